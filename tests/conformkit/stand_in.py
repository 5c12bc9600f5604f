"""An honest runner in one file: units of pure CPU time under the governor. Mutants subclass it and break one rule
each.

It runs inside a bundle, beside `runner.py`, in the kit's own Python. It must keep every rule, or no mutant proves
anything.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time

from oarbank_sdk.control import Control, Stopped, replace_text
from oarbank_sdk.duty import Duty


def burn(seconds: float) -> None:
    """Use a processor for so much time of its own, however long that takes."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class StandIn:
    """The runner; every step that a mutant may get wrong is a method."""

    device = "cpu"

    def main(self) -> int:
        parser = argparse.ArgumentParser()
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("doctor").add_argument("--json", action="store_true")
        run = commands.add_parser("run")
        for name in ("--spec", "--workdir", "--out", "--events"):
            run.add_argument(name)
        self.args = parser.parse_args()
        return self.doctor() if self.args.command == "doctor" else self.run()

    # ---- doctor

    def doctor(self) -> int:
        print(json.dumps(self.diagnosis()))
        return 0

    def diagnosis(self) -> dict:
        attrs = {"platform": os.environ["OARBANK_PLATFORM"], "backends": ["stub"]}
        return {"runner_protocol": {"supported": [1]}, "health": "healthy", "attrs": attrs}

    # ---- run

    def run(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes with a stop, which is answered
        with open(self.args.spec, encoding="utf-8") as file:
            self.spec = json.load(file)
        self.ctl = self.control()
        self.duty = self.governor()
        self.phase()
        try:
            self.work(self.spec["payload"])
        except Stopped:
            return self.stopped()
        self.write_result()
        self.duty.close()
        return 0

    def control(self) -> Control:
        return Control()

    def governor(self) -> Duty:
        return Duty(self.ctl, events=self.events_path(), device=self.device)

    def events_path(self) -> str | None:
        return self.args.events

    def phase(self) -> None:
        self.ctl.phase("work")

    def work(self, payload: dict) -> None:
        for _ in range(payload["units"]):
            self.ctl.safe_point()
            self.unit(payload["unit_s"])

    def unit(self, unit_s: float) -> None:
        with self.duty.unit():
            burn(unit_s)

    def stopped(self) -> int:
        return self.ctl.acknowledge_stop()

    def texts(self) -> list[str]:
        return [f"{self.spec['payload']['units']} units"]

    def more(self) -> dict:
        """What else the payload holds."""
        return {}

    def write_result(self) -> None:
        result = {
            "schema": f"{os.environ['OARBANK_MODULE']}/result@1",
            "module_version": self.spec["module_version"],
            "payload": {"texts": self.texts(), **self.more()},
        }
        replace_text(self.args.out, json.dumps(result) + "\n")


if __name__ == "__main__":
    sys.exit(StandIn().main())

"""Breaks where a runner may write: it makes a file beside its workdir and removes it at once."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"writes.inside"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        path = os.path.join(self.args.workdir, os.pardir, "lock")
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        os.unlink(path)
        super().work(payload)


if __name__ == "__main__":
    sys.exit(Runner().main())

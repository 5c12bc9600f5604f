"""{{name}}: a runner that keeps the GPU busy for no more than the duty it is given.

    python -I runner.py run --spec SPEC --workdir DIR --out FILE [--events FILE]
    python -I runner.py doctor --json

Put your own work into `work()`. Three things make it safe to run beside somebody's game or trainer: every unit of GPU
work is inside `duty.unit()` and ends when the GPU is done, units are short, and `ctl.safe_point()` is between them.
"""

import argparse
import json
import os
import signal
import sys

sys.dont_write_bytecode = True  # this folder is not ours to write to
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "vendor"))

from oarbank_sdk.control import Control, Stopped, replace_text  # noqa: E402
from oarbank_sdk.duty import Duty  # noqa: E402

DEVICE = "cpu"  # this stand-in computes there; say "gpu" when work() uses one


def work(state: int) -> int:
    """One unit: a few milliseconds that end when the device is done. On a GPU, synchronise before you return."""
    for _ in range(40_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
    return state


def run(args: argparse.Namespace) -> int:
    """Do the task in the spec; the exit status."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)    # an agent sends it right behind a stop, which is answered below
    ctl = Control(args.workdir)                      # first: it installs the nudge handler
    try:
        with open(args.spec, encoding="utf-8") as file:
            units = json.load(file)["payload"]["units"]
    except (OSError, ValueError, LookupError, TypeError) as fault:
        return fail(args.workdir, "bad_spec", f"{args.spec}: must be a spec with /payload/units; found: {fault!r}", 2)
    if not isinstance(units, int) or isinstance(units, bool) or units < 1:
        return fail(args.workdir, "bad_spec", f"/payload/units: must be a whole number, 1 or more; found {units!r}", 2)
    duty = Duty(ctl, events=args.events, device=DEVICE)
    ctl.phase("work")
    state = 1
    try:
        for _ in range(units):
            ctl.safe_point()                         # pause and stop
            with duty.unit():                        # waits until the duty allows it
                state = work(state)
    except Stopped:
        return ctl.acknowledge_stop()
    duty.close()
    result = {
        "schema": "{{name}}/result@1",
        "module_version": "0.1.0",
        "payload": {"units": units, "checksum": str(state)},
    }
    replace_text(args.out, json.dumps(result) + "\n")  # last, and all at once
    return 0


def fail(workdir: str, code: str, detail: str, status: int) -> int:
    """Say why in failure.json; the exit status that goes with it."""
    replace_text(os.path.join(workdir, "failure.json"), json.dumps({"reason": "{{name}}/" + code, "detail": detail}))
    return status


def doctor() -> int:
    """What this machine lacks, on one line; exit 0 also when something does."""
    attrs = {"platform": os.environ.get("OARBANK_PLATFORM", "")}
    print(json.dumps({"runner_protocol": {"supported": [1]}, "health": "healthy", "attrs": attrs, "checks": []}))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="runner.py")
    commands = parser.add_subparsers(dest="command", required=True)
    task = commands.add_parser("run")
    for name in ("--spec", "--workdir", "--out"):
        task.add_argument(name, required=True)
    task.add_argument("--events")
    commands.add_parser("doctor").add_argument("--json", action="store_true")
    args = parser.parse_args()
    return doctor() if args.command == "doctor" else run(args)


if __name__ == "__main__":
    sys.exit(main())

"""Other work beside a protected program: units of one buffer each, held at a duty by the SDK's governor.

    python -m tests.fakegpu.governed SOCKET --duty D --unit-ms MS [--seconds S] [--wall] [--events FILE]

Charges device time, or with `--wall` the unit's wall time. Prints one JSON object at the end: units, their wall and
device seconds, and over how many seconds. With `--seconds 0` it works until SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time

from oarbank_sdk.duty import Duty
from tests.fakegpu.client import Client


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket")
    parser.add_argument("--duty", type=float, required=True, help="0 to 1; 1 is ungoverned")
    parser.add_argument("--unit-ms", type=float, required=True, help="device time of a unit, on average")
    parser.add_argument("--spread", type=float, default=0.2, help="part by which lengths vary around it (default 0.2)")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long to work (default 0: until SIGTERM)")
    parser.add_argument("--wall", action="store_true", help="charge wall time, the wait for others included")
    parser.add_argument("--events", help="where reports go")
    options = parser.parse_args()
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    duty = Duty(None, events=options.events)
    duty.set(options.duty)
    wall_s = device_s = 0.0
    units = 0
    lengths = random.Random(7)  # equal ones would fall into step with the frames of a program
    began = time.monotonic()
    until = began + options.seconds if options.seconds else float("inf")
    with Client(options.socket) as gpu:
        while not ended and time.monotonic() < until:
            with duty.unit() as unit:
                start = time.monotonic()
                length_s = options.unit_ms / 1e3 * lengths.uniform(1 - options.spread, 1 + options.spread)
                busy_s = gpu.run(length_s).busy_s
                if not options.wall:
                    unit.busy(busy_s)
                wall_s += time.monotonic() - start
            device_s += busy_s
            units += 1
        took_s = time.monotonic() - began
    duty.close()
    print(json.dumps({"units": units, "wall_s": wall_s, "device_s": device_s, "took_s": took_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

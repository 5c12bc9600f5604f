"""A protected program: draws frames on the fake GPU, and says how many it drew and how long each took.

    python -m tests.fakegpu.program SOCKET FOLDER [--frame-ms MS] [--rate HZ] [--seconds S]

Each frame is one buffer, submitted at a tick of the display; a frame that is late skips the ticks it missed.
`FOLDER/frames` holds the number of frames drawn, which only grows. `FOLDER/frame_times.json` holds, at the end, each
frame's (start, seconds) from its tick's submission to the device's end, on the machine's monotonic clock: how late the
program itself woke up is not in it. With `--seconds 0` it draws until SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.fakegpu.client import Client

DIGITS = 12
"""The counter has a fixed width, so that no reader ever sees half a number."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--frame-ms", type=float, default=8.0, help="device time of a frame (default 8)")
    parser.add_argument("--rate", type=float, default=60.0, help="frames a second (default 60)")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long to draw (default 0: until SIGTERM)")
    options = parser.parse_args()
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    end_ns = time.monotonic_ns() + round(options.seconds * 1e9) if options.seconds else None
    with Client(options.socket) as gpu:
        times = draw(gpu, options, lambda: bool(ended) or (end_ns is not None and time.monotonic_ns() >= end_ns))
    (options.folder / "frame_times.json").write_text(json.dumps(times))
    return 0


def draw(gpu: Client, options: argparse.Namespace, over: Callable[[], bool]) -> list[tuple[float, float]]:
    """Draw until it is over; each frame's start and length in seconds."""
    period_ns = round(1e9 / options.rate)
    times: list[tuple[float, float]] = []
    counter = os.open(options.folder / "frames", os.O_WRONLY | os.O_CREAT, 0o644)
    tick_ns = time.monotonic_ns()
    while not over():
        began_ns = time.monotonic_ns()
        ran = gpu.run(options.frame_ms / 1e3)
        times.append((began_ns / 1e9, (ran.end_ns - began_ns) / 1e9))
        os.pwrite(counter, f"{len(times):0{DIGITS}}\n".encode(), 0)
        now_ns = time.monotonic_ns()
        tick_ns += period_ns * max(1, -((tick_ns - now_ns) // period_ns))
        time.sleep(max(0, tick_ns - now_ns) / 1e9)
    os.close(counter)
    return times


if __name__ == "__main__":
    sys.exit(main())

"""What a protected program feels of governed units beside it, and what they really held: one JSON object on stdout.

    hatch run bench:frames [--duty D] [--seconds S] [--rounds N] [--quick]

Real processes share a fake GPU (`tests/fakegpu`: first come, first served, each buffer to its end): a program that
draws frames, and units of one buffer each under the governor. `p99_ms` is the program's 99th percentile frame, from
its submission to the device's end; `growth` is that over the same program alone, less one. Held is said twice: by the
units' wall time, which holds the wait for the frames, and by the device's. Each row charges either, as a unit that
calls `unit.busy()` or not. The median of the rounds is shown, and no harm without the share that did it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakegpu.processes import answer, frames, governed, program
from tests.fakegpu.running import FakeGpu, fake_gpu

UNITS_MS = (1.0, 5.0, 20.0)
SETTLE_S = 0.5
"""Frames drawn this early are left out: processes start."""


def turn(gpu: FakeGpu, options: argparse.Namespace, unit_ms: float | None, *, charged: str) -> dict[str, float]:
    """One turn: the program, and beside it units of `unit_ms`, or nobody."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        work = None
        if unit_ms is not None:
            more = ["--wall"] if charged == "wall" else []
            work = running.enter_context(governed(gpu, options.duty, unit_ms, *more))
            _at_work(gpu, work.pid)
        drawing = running.enter_context(
            program(gpu, Path(folder), "--frame-ms", str(options.frame_ms), "--rate", str(options.rate))
        )
        _at_work(gpu, drawing.pid)
        time.sleep(SETTLE_S)
        began, before = time.monotonic(), _busy_ns(gpu)
        time.sleep(options.seconds)
        ended, after = time.monotonic(), _busy_ns(gpu)
        told = {} if work is None else answer(work)
        drawn = frames(drawing, Path(folder))
    lengths = sorted(length_s for at, length_s in drawn if began <= at < ended)
    out = {
        "p99_ms": _percentile(lengths, 0.99) * 1e3,
        "median_ms": _percentile(lengths, 0.5) * 1e3,
        "frames_per_s": len(lengths) / (ended - began),
        "device_busy": (sum(after.values()) - sum(before.values())) / 1e9 / (ended - began),
    }
    if work is not None:
        out["held_device"] = (after[work.pid] - before[work.pid]) / 1e9 / (ended - began)
        out["held_wall"] = out["held_device"] * told["wall_s"] / told["device_s"]
    return out


def _at_work(gpu: FakeGpu, pid: int) -> None:
    while not _busy_ns(gpu).get(pid):
        time.sleep(0.005)


def _busy_ns(gpu: FakeGpu) -> dict[int, int]:
    return {one["pid"]: one["busy_ns"] for one in gpu.counters()["clients"]}


def _percentile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median_turn(take: Callable[[], dict[str, float]], rounds: int) -> dict[str, float]:
    """The median of each figure over some turns."""
    turns = [take() for _ in range(rounds)]
    return {name: round(statistics.median(one[name] for one in turns), 4) for name in turns[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duty", type=float, default=0.3, help="of the units (default 0.3)")
    parser.add_argument("--frame-ms", type=float, default=8.0, help="device time of a frame (default 8)")
    parser.add_argument("--rate", type=float, default=60.0, help="frames a second (default 60)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each turn (default 6)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of a row (default 3)")
    parser.add_argument("--quick", action="store_true", help="one turn of 2 s each")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 2.0, 1
    rows: list[dict[str, object]] = []
    with fake_gpu() as gpu:
        alone = median_turn(lambda: turn(gpu, options, None, charged="none"), options.rounds)
        for charged in ("device", "wall"):
            for unit_ms in UNITS_MS:

                def take(unit_ms: float = unit_ms, charged: str = charged) -> dict[str, float]:
                    return turn(gpu, options, unit_ms, charged=charged)

                found = median_turn(take, options.rounds)
                growth = round(found["p99_ms"] / alone["p99_ms"] - 1, 3)
                rows.append({"unit_ms": unit_ms, "charged": charged, "growth": growth, **found})
                print(json.dumps(rows[-1]), file=sys.stderr)
    json.dump(
        {
            "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
            "duty": options.duty,
            "frame_ms": options.frame_ms,
            "rate": options.rate,
            "seconds_per_turn": options.seconds,
            "turns_per_row": options.rounds,
            "alone": alone,
            "rows": rows,
        },
        sys.stdout,
        indent=1,
    )
    print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What the governor holds, what it costs, how fast it reacts: one JSON object on standard output.

    hatch run bench:governor [--seconds S] [--rounds N] [--quick]

Each row runs our governor and a plain ``sleep(b*(1-d)/d)`` in turns on the same busy loop, so that the two share
the machine's mood, and takes the median of the turns: on a shared host one turn in a few is disturbed. Shares are
busy seconds over wall seconds, from the start of the first unit to the start of the one after the last. `entitled` is
min(d, b/(b+host)), with b/(b+host) measured on the same loop when nobody waits: nobody can hold more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from oarbank_sdk.control import Control, replace_text
from oarbank_sdk.duty import Duty

DUTIES = (0.1, 0.3, 0.5, 0.8)
UNITS_MS = (1, 5, 20)
HOST_MS = (0, 1)
WINDOW_S = 2.0
clock = time.perf_counter


@dataclass
class Series:
    """Units as they ran: (start, end), in seconds."""

    units: list[tuple[float, float]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        wall = self.units[-1][0] - self.units[0][0]
        busy = sum(end - start for start, end in self.units[:-1])
        longest = max(end - start for start, end in self.units)
        mean = busy / (len(self.units) - 1)
        return {"held": busy / wall, "unit_s": mean, "longest_s": longest, "worst_2s": worst(self.units, WINDOW_S)}


def spin(seconds: float) -> None:
    end = clock() + seconds
    while clock() < end:
        pass


def lengths(unit_s: float) -> Iterator[float]:
    rng = random.Random(7)
    while True:
        yield unit_s * rng.uniform(0.8, 1.2)


def governed(share: float, unit_s: float, host_s: float, seconds: float) -> Series:
    duty = Duty(None)
    duty.set(share)
    series = Series()
    stop = clock() + seconds
    for length in lengths(unit_s):
        with duty.unit():
            start = clock()
            spin(length)
            end = clock()
        series.units.append((start, end))
        if host_s:
            spin(host_s)
        if end >= stop:
            return series
    raise AssertionError


def free(unit_s: float, host_s: float, seconds: float) -> Series:
    """The same loop with nobody who waits: what is possible at all."""
    return plain_sleep(1.0, unit_s, host_s, seconds)


def plain_sleep(share: float, unit_s: float, host_s: float, seconds: float) -> Series:
    series = Series()
    stop = clock() + seconds
    for length in lengths(unit_s):
        start = clock()
        spin(length)
        end = clock()
        series.units.append((start, end))
        if share < 1.0:
            time.sleep((end - start) * (1 - share) / share)
        if host_s:
            spin(host_s)
        if end >= stop:
            return series
    raise AssertionError


def worst(units: list[tuple[float, float]], window_s: float) -> float:
    """The largest share of any window that starts with a unit."""
    best = busy = 0.0
    last = 0
    for first, (start, end) in enumerate(units):
        while last < len(units) and units[last][1] <= start + window_s:
            busy += units[last][1] - units[last][0]
            last += 1
        part = max(0.0, start + window_s - units[last][0]) if last < len(units) else 0.0
        best = max(best, busy + part)
        busy -= end - start if first < last else 0.0
        last = max(last, first + 1)
    return best / window_s


def row(duty: float, unit_ms: float, host_ms: float, seconds: float, rounds: int) -> dict[str, object]:
    """One row: `rounds` times what is possible, ours and plain, one after the other; medians, but the worst window."""
    unit_s, host_s = unit_ms / 1e3, host_ms / 1e3
    entitled: list[float] = []
    found: dict[str, list[dict[str, float]]] = {"ours": [], "plain": []}
    for _ in range(rounds):
        entitled.append(min(duty, free(unit_s, host_s, seconds / 3).figures()["held"]))
        for name, run in (("ours", governed), ("plain", plain_sleep)):
            found[name].append(run(duty, unit_s, host_s, seconds).figures())
    median = statistics.median
    out: dict[str, object] = {"duty": duty, "unit_ms": unit_ms, "host_ms": host_ms}
    out["entitled"] = round(median(entitled), 4)
    for name, runs in found.items():
        worst_run = max(runs, key=lambda r: r["worst_2s"] - r["longest_s"] * (1 - duty) / 2)
        out[name] = {
            "held": round(median(r["held"] for r in runs), 4),
            "of_entitled": round(median(r["held"] / most for r, most in zip(runs, entitled, strict=True)), 4),
            "worst_2s": round(worst_run["worst_2s"], 4),
            "bound_2s": round(duty + worst_run["longest_s"] * (1 - duty) / 2 + 0.01, 4),
        }
    return out


def cost(duty: Duty, rounds: int = 20_000, repeats: int = 15) -> float:
    """Microseconds of one unit with nothing in it, loop and empty body taken off: a median."""

    def once(loop: Callable[[], None]) -> float:
        start = clock()
        loop()
        return (clock() - start) / rounds * 1e6

    def units() -> None:
        unit = duty.unit
        for _ in range(rounds):
            with unit():
                pass

    def nothing() -> None:
        for _ in range(rounds):
            pass

    return statistics.median(once(units) - once(nothing) for _ in range(repeats))


def import_cost(repeats: int = 9) -> float:
    """Milliseconds that both modules add to a bare interpreter: the median of pairs."""

    def once(code: str) -> float:
        start = clock()
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        return (clock() - start) * 1e3

    both = "import oarbank_sdk.control, oarbank_sdk.duty"
    once(both)
    return statistics.median(once(both) - once("pass") for _ in range(repeats))


def reaction(trials: int) -> dict[str, dict[str, float]]:
    """Milliseconds from the nudge to the governor's answer in the middle of a long idle."""
    out = {}
    documents: dict[str, dict[str, object]] = {"stop": {"stop": True}, "new_duty": {"gpu_duty": 1}}
    for name, document in documents.items():
        took = sorted(_react(document) for _ in range(trials))
        out[name] = {"median_ms": round(statistics.median(took), 3), "p99_ms": round(took[int(0.99 * (trials - 1))], 3)}
    return out


def _react(document: Mapping[str, object]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "control.json"
        path.write_text('{"seq": 0, "gpu_duty": 0.001}')
        ctl = Control(folder)
        duty = Duty(ctl)
        with duty.unit():
            spin(0.005)
        nudged = [0.0]

        def nudge() -> None:
            time.sleep(0.005 + random.random() * 0.01)
            replace_text(path, json.dumps({"seq": 1, **document}))
            nudged[0] = clock()
            os.kill(os.getpid(), signal.SIGUSR1)

        thread = threading.Thread(target=nudge)
        thread.start()
        try:
            with duty.unit():
                pass
        except Exception:
            pass
        answered = clock()
        thread.join()
        return (answered - nudged[0]) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of each turn (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of a row (default 3)")
    parser.add_argument("--quick", action="store_true", help="a few rows only")
    options = parser.parse_args()
    combos = [(d, u, h) for d in DUTIES for u in UNITS_MS for h in HOST_MS]
    if options.quick:
        combos = [(0.3, 1, 0), (0.5, 1, 1), (0.8, 5, 1)]
    rows = []
    for combo in combos:
        rows.append(row(*combo, options.seconds, options.rounds))
        print(json.dumps(rows[-1]), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "control.json").write_text('{"seq": 0}')
        costs = {"unit_us": cost(Duty(None)), "unit_with_control_us": cost(Duty(Control(folder)))}
    plain = min(rows, key=lambda r: r["plain"]["of_entitled"])  # type: ignore[index]
    json.dump(
        {
            "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
            "seconds_per_turn": options.seconds,
            "turns_per_row": options.rounds,
            "rows": rows,
            "ours_least_of_entitled": min(r["ours"]["of_entitled"] for r in rows),  # type: ignore[index]
            "ours_over_bound": [r for r in rows if r["ours"]["worst_2s"] > r["ours"]["bound_2s"]],  # type: ignore[index]
            "plain_worst_row": plain,
            "cost": {name: round(value, 3) for name, value in costs.items()},
            "import_ms": round(import_cost(), 2),
            "reaction": reaction(100 if options.quick else 400),
        },
        sys.stdout,
        indent=1,
    )
    print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Whether the kit accuses an honest runner on a machine with every core busy, or clears a wrong one.

    python benchmarks/load.py [--runs 200] [--mutants 40] [--at-once 4]

Burners keep every core busy. Beside them the duty suite, with a window of 2 s, judges the honest runner of the tests
`--runs` times, and three wrong ones `--mutants` times each: without a governor, with a burst, without reports. The
honest one must never fail, and a wrong one must never be green; what could not be told is counted and shown. Prints
one JSON object, also when it is interrupted. Exit codes: 0 nothing was judged wrongly, 1 something was, 3 interrupted
before anything was.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
HONEST = "honest_runner"
WRONG = ("runs_units_without_the_governor", "bursts_and_rests", "reports_nothing")
LIMIT_S = 300.0
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))"


@contextmanager
def every_core_busy() -> Generator[int]:
    """Burn on every core for as long as the block lasts; a burner also ends when this process does."""
    burners = [subprocess.Popen([sys.executable, "-S", "-c", BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield len(burners)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def judged(name: str) -> dict:
    """One run of the kit in a process of its own: failed, unknown and excused rules, exit code, seconds."""
    command = [sys.executable, "-m", "tests.conformkit.mutant_table", "--judge", name, "--only", "duty"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"load: the kit must judge {name}; found {done.stderr[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def summed(found: list[dict]) -> dict:
    """What came out of all runs of one runner."""
    return {
        "runs": len(found),
        "green": sum(one["exit"] == 0 for one in found),
        "failed": sum(one["exit"] == 1 for one in found),
        "could_not_tell": sum(one["exit"] == 3 for one in found),
        "failed_rules": dict(Counter(rule for one in found for rule in one["failed"])),
        "unknown_rules": dict(Counter(rule for one in found for rule in one["unknown"])),
        "median_s": median(one["took_s"] for one in found) if found else None,
        "longest_s": max((one["took_s"] for one in found), default=None),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="runs of the honest runner (200)")
    parser.add_argument("--mutants", type=int, default=40, help="runs of each wrong one (40)")
    parser.add_argument("--at-once", type=int, default=4, help="runs at once (4)")
    options = parser.parse_args()
    if min(options.runs, options.mutants, options.at_once) < 1:
        parser.error("--runs, --mutants and --at-once must be 1 or more")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    names = planned(options.runs, options.mutants)
    found: dict[str, list[dict]] = {name: [] for name in (HONEST, *WRONG)}
    with every_core_busy() as burners:
        complete = fill(found, names, options.at_once)
    sums = {name: summed(runs) for name, runs in found.items()}
    honest, wrong = sums[HONEST], {name: sums[name] for name in WRONG}
    wrongly = honest["failed"] + sum(one["green"] for one in wrong.values())
    print(json.dumps({
        "benchmark": "load", "cpus": os.cpu_count(), "burners": burners, "at_once": options.at_once,
        "complete": complete, "judged_wrongly": wrongly, "honest": honest, "wrong": wrong,
        "took_s": round(time.monotonic() - began, 1),
    }))  # fmt: skip
    return 1 if wrongly else 0 if complete else 3


def planned(runs: int, mutants: int) -> list[str]:
    """All runs, the kinds of runner mixed evenly, so that a part of them is a sample of the whole."""
    counts = {HONEST: runs, **dict.fromkeys(WRONG, mutants)}
    places = [((i + 0.5) / count, name) for name, count in counts.items() for i in range(count)]
    return [name for _, name in sorted(places)]


def fill(found: dict[str, list[dict]], names: list[str], at_once: int) -> bool:
    """Judge them all, some at once; False when that was interrupted."""
    began = time.monotonic()
    workers = ThreadPoolExecutor(at_once)
    try:
        for done, (name, one) in enumerate(zip(names, workers.map(judged, names), strict=True), start=1):
            found[name].append(one)
            if done % 20 == 0:
                print(f"{done} of {len(names)} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return False
    finally:
        workers.shutdown(wait=True, cancel_futures=True)
    return True


if __name__ == "__main__":
    sys.exit(main())

"""What the law does on a GPU on paper, in simulated time: one JSON object on standard output.

    hatch run bench:law [--hours H] [--quick]

A program hands in a frame of 8 ms of GPU 60 times a second; jobs hand in units when the real governor's arithmetic
says so; the GPU runs each to its end, first come, first served. The law hears what an agent would tell it: samples
every 2 s, pressure every second with noise and gaps, the program's start and end. Always the same figures.

`harm_to_zero`: from a harmed program's first frame to the order of duty 0, and to the end of the last unit.
`harvest`: what jobs get of the GPU under the law, against the best duty that never changes and keeps the harm under
the target; every row that can't be read halves the budget, which `law_with_gaps` shows. `units`: what a duty of 0.3
really holds, and the frames' 99th percentile. `false_pauses`: strikes of well-sized jobs at their duty, by how fine
the source is; must be 0. Units are uneven by 10 %; those of `false_pauses_of_even_units` are all alike, so that a
cycle can fall in step with a driver's looks. `caught`: seconds until a job that takes 0.15 too much is paused, and
one that takes all; null: not within 10 minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.agent_check.paper_agent import Agent
from tests.agent_check.paper_gpu import FRAME_S, PaperGpu, Worker
from tests.agent_check.paper_judging import caught_after, false_pauses
from tests.agent_check.paper_sources import LOOK_S, SOURCES

UNITS_MS = (0.25, 1, 2, 5, 20, 50)
TARGETS = (0.05, 0.15)
"""An owner's targets: frames may take so much longer on average, as a part."""
UNREADABLE = 0.01
"""So often a row or a sample can't be read, where the figure says so."""


def harm_to_zero(times: int) -> dict[str, Any]:
    orders, idles = [], []
    for seed in range(times):
        rng = random.Random(seed)
        agent = Agent(PaperGpu([Worker(0.02), Worker(0.02)], rng), target=TARGETS[0], unreadable=UNREADABLE)
        began = rng.uniform(5, 15)
        agent.gpu.run(began)
        agent.starts(0.6)
        agent.go_on(began + 10)
        assert agent.zero_at is not None
        orders.append(agent.zero_at - began)
        idles.append(max(worker.units[-1][2] for worker in agent.gpu.workers) - began)
    return {"starts": times, "order_s": _spread(orders), "last_unit_ended_s": _spread(idles)}


def best_constant(target: float) -> dict[str, float]:
    """The largest share of two jobs of 5 ms units, at a duty that never changes, that keeps the harm at the target."""
    best = {"duty": 0.0, "share": 0.0}
    for thousandth in range(10, 500, 10):
        duty = thousandth / 1000
        gpu = PaperGpu([Worker(0.005, duty=duty / 2), Worker(0.005, duty=duty / 2)], random.Random(3), frame=0.0)
        gpu.run(60)
        if gpu.slowed(5) > target:
            break
        best = {"duty": duty, "share": sum(worker.held(5, 60) for worker in gpu.workers)}
    return best


def harvest(seconds: float, target: float) -> dict[str, Any]:
    """What a fixed duty gets at best, and the law, with a metric that can always be read and one that can't."""
    best = best_constant(target)
    return {
        "target": target,
        "best_constant": {name: round(value, 4) for name, value in best.items()},
        "law": under_the_law(seconds, target, best["share"], 0.0),
        "law_with_gaps": under_the_law(seconds, target, best["share"], UNREADABLE),
    }


def under_the_law(seconds: float, target: float, best_share: float, unreadable: float) -> dict[str, Any]:
    """The same two jobs under the law, beside a program whose level is far too high."""
    gpu = PaperGpu([Worker(0.005), Worker(0.005)], random.Random(4))
    agent = Agent(gpu, target=target, unreadable=unreadable)
    agent.gpu.run(10)
    agent.starts(0.5)
    settled = 300.0
    agent.go_on(settled)
    pressures = agent.go_on(settled + seconds)
    share = sum(worker.held(settled, settled + seconds) for worker in agent.gpu.workers)
    agent.ends()
    agent.go_on(agent.gpu.now + 10)
    now = agent.gpu.now
    return {
        "share": round(share, 4),
        "of_best": round(share / best_share, 3),
        "mean_pressure": round(statistics.fmean(pressures), 3),
        "rows_at_target_or_above": round(sum(p >= 1 for p in pressures) / len(pressures), 3),
        "pauses": agent.pauses,
        "share_after_the_program": round(sum(worker.held(now - 5, now) for worker in agent.gpu.workers), 3),
    }


def units(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for unit_ms in UNITS_MS:
        row: dict[str, Any] = {"unit_ms": unit_ms}
        for charged in ("wall", "device"):
            worker = Worker(unit_ms / 1000, charged, duty=0.3)
            gpu = PaperGpu([worker], random.Random(5), frame=0.0)
            gpu.run(seconds)
            row[f"charged_{charged}"] = {
                "held_device": round(worker.held(1, seconds), 4),
                "held_wall": round(worker.held_by_wall(1, seconds), 4),
                "frame_p99_ms": round(1000 * gpu.percentile(0.99, 1), 2),
            }
        rows.append(row)
    return rows


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 3), "max": round(max(values), 3)}


def caught(source: str, times: int, excess: float | None) -> dict[str, Any]:
    rng = random.Random(source)
    after = [caught_after(source, excess, rng) for _ in range(times)]
    median, found = statistics.median(after), sum(one < float("inf") for one in after)
    return {"median_s": round(median, 1) if median < float("inf") else None, "within_10_min": round(found / times, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description="The law on a GPU on paper, in simulated time.")
    parser.add_argument("--hours", type=int, default=1000, help="simulated hours for each source (default 1000)")
    parser.add_argument("--quick", action="store_true", help="20 hours, and everything else shorter")
    options = parser.parse_args()
    began = time.perf_counter()
    hours = 20 if options.quick else options.hours
    run_s = 600 if options.quick else 3600
    times = 40 if options.quick else 400
    out = {
        "frame_ms": FRAME_S * 1000,
        "harm_to_zero": harm_to_zero(5 if options.quick else 40),
        "harvest": [harvest(run_s, target) for target in TARGETS],
        "units": units(10 if options.quick else 60),
        "hours": hours,
        "false_pauses": {source: false_pauses(source, hours, random.Random(source)) for source in SOURCES},
        "false_pauses_of_even_units": {
            source: false_pauses(source, hours, random.Random(source), uneven=0.0) for source in LOOK_S
        },
        "caught": {source: caught(source, times, 0.15) for source in SOURCES},
        "caught_taking_all": {source: caught(source, times, None) for source in SOURCES},
    }
    out["took_s"] = round(time.perf_counter() - began, 1)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()

"""How near, how safely and how soon a level is certified: one JSON object on stdout.

    hatch run bench:sweep [--target H] [--runs N] [--hours H] [--quick] [--real]

Searches run in virtual time against programs on paper (`tests/agent_check/paper_program.py`), whose true level is
known, under five kinds of noise: `low` and `high` are the lowest and highest certified level over the true one, `above`
counts the runs that certified a level that harms more than the target, and must be 0. `noise_only` is a program without
any steady progress. `barely_harmful` is one level that harms 1 % more than the target, tested over and over: how often
it passed, which may be 1 in 400. With `--real`, one search on a fake GPU with real processes follows (some minutes).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from oarbank_agent_check.certify import Rules
from oarbank_agent_check.sources.gpu import VARIABLE
from tests.agent_check.paper_program import CURVES, NOISES, PaperProgram, program, sweep, true_level
from tests.fakegpu import reader, runners
from tests.fakegpu.processes import program as drawing
from tests.fakegpu.running import ROOT, fake_gpu


def on_paper(curve: str, noise: str, options: argparse.Namespace) -> dict[str, Any]:
    truth = true_level(CURVES[curve], options.target)
    levels, hours = [], []
    for seed in range(options.runs):
        paper = program(curve, noise, seed)
        began = paper.t
        found = sweep(paper, Rules(target=options.target, time_limit_s=options.hours * 3600))
        levels.append((found.level or 0.0) / truth)
        hours.append((paper.t - began) / 3600)
    return {
        "curve": curve,
        "noise": noise,
        "true_level": round(truth, 4),
        "low": round(min(levels), 3),
        "high": round(max(levels), 3),
        "above": sum(level > 1 for level in levels),
        "within_a_tenth": sum(0.9 <= level <= 1 for level in levels),
        "hours": round(statistics.median(hours), 2),
        "hours_most": round(max(hours), 2),
    }


def noise_only(options: argparse.Namespace) -> dict[str, Any]:
    certified, minutes, why = 0, [], None
    for seed in range(options.runs):
        rng = random.Random(seed)
        paper = PaperProgram(CURVES["game"], (math.exp(rng.gauss(0, 1.0)) for _ in iter(int, 1)), rng)
        began = paper.t
        found = sweep(paper, Rules(target=options.target))
        certified += found.level is not None
        minutes.append((paper.t - began) / 60)
        why = found.why
    return {"certified": certified, "minutes": round(statistics.median(minutes), 1), "why": why}


def barely_harmful(noise: str, options: argparse.Namespace) -> dict[str, Any]:
    runs, passed = 10 * options.runs, 0
    for seed in range(runs):
        paper = program("trainer", noise, seed)
        paper.harm = lambda level: 1.01 * options.target
        found = sweep(paper, Rules(target=options.target, levels=(0.3,), time_limit_s=2 * 3600))
        passed += found.tests[0].verdict == "pass"
    return {"noise": noise, "runs": runs, "passed": passed}


def on_fake_gpu() -> dict[str, Any]:
    """One search with real processes: frames of 3 ms, always one to draw, beside units of 2 ms."""
    with fake_gpu() as gpu, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = runners.build(folder / "module", gpu.path, timeout_s=3600)
        payload = json.dumps({"units": 10_000_000, "unit_s": 0.002})
        env = {**os.environ, VARIABLE: reader.SPEC, reader.VARIABLE: gpu.path, "PYTHONPATH": str(ROOT)}
        command = [
            str(Path(sys.executable).with_name("oarbank-agent-check")), "sweep", str(module), "--payload", payload,
            "--progress", f"@{folder}/frames", "--data", str(folder / "data"), "--out", str(folder / "level.json"),
            "--target", "0.25", "--window", "1", "--settle", "0.2", "--time-limit", "240", "--seed", "1",
        ]  # fmt: skip
        with drawing(gpu, folder, "--frame-ms", "3", "--rate", "1000"):
            time.sleep(0.5)
            done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False)
        certificate = json.loads((folder / "level.json").read_text())
    names = ("level", "verdict", "harm", "low", "high", "held")
    levels = [{name: tried[name] for name in names} | {"pairs": len(tried["pairs"])} for tried in certificate["levels"]]
    return {
        "exit": done.returncode,
        "level": certificate["level"],
        "reason": certificate["reason"],
        "target": certificate["target"],
        "took_s": round(certificate["took_s"]),
        "levels": levels,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=float, default=0.05, help="harm that is still fine (default 0.05)")
    parser.add_argument("--runs", type=int, default=20, help="searches a row (default 20)")
    parser.add_argument("--hours", type=float, default=24.0, help="time limit of a search on paper (default 24)")
    parser.add_argument("--quick", action="store_true", help="3 searches a row")
    parser.add_argument("--real", action="store_true", help="one search with real processes too")
    options = parser.parse_args()
    if options.quick:
        options.runs = 3
    rows = []
    for curve in CURVES:
        for noise in NOISES:
            rows.append(on_paper(curve, noise, options))
            print(json.dumps(rows[-1]), file=sys.stderr)
    out: dict[str, Any] = {
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
        "target": options.target,
        "runs_per_row": options.runs,
        "on_paper": rows,
        "noise_only": noise_only(options),
        "barely_harmful": [barely_harmful(noise, options) for noise in NOISES],
    }
    if options.real:
        out["on_fake_gpu"] = on_fake_gpu()
    json.dump(out, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

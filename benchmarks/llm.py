"""What llmserve's engines give, free and under a duty: one JSON object on standard output.

    hatch run llm:bench [--quick] [--threads N] [--no-mlx]

8 prompts of 64 new tokens, greedy, each figure the median of three turns. A turn is a process of its own, and the
ways of a row take turns, so that they share the machine's mood: on a shared host one turn in a few is disturbed.
`efficiency` at duty d is throughput(d) / (d * throughput when free), on one thread; `measured` is what the tick meter
of oarbank-agent-check sees of the process from outside, `held` what the governor says. `cost` of slices is the part of
the free throughput that they take. `prefill` is the longest unit of a 512-token prompt at duty 0.3.
`cpu` are the same comparisons in CPU time on one thread, in which a busy neighbour's turns do not count: what the plain
batched loop took over what ours took, and what ours took when free over what it took so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the tests know the model, and make MLX's form of it

from oarbank_agent_check.sources.cpu_threads import CpuThreads  # noqa: E402
from oarbank_agent_check.tree import ProcessTree  # noqa: E402
from tests.real_model.conftest import gguf  # noqa: E402
from tests.real_model.mlx_model import convert  # noqa: E402

DUTIES = (0.3, 0.5)
LONGEST_S = 0.020
TURNS = 3


def take(turn: dict[str, Any]) -> dict[str, Any]:
    """One turn's figures, with what the meter saw of it."""
    command = [sys.executable, str(Path(__file__).with_name("llm_turn.py")), json.dumps(turn)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise SystemExit(f"{turn}: did not become ready")
        meter = CpuThreads(ProcessTree(child.pid))
        meter.start()
        child.stdin.write("go\n")
        child.stdin.flush()
        line = child.stdout.readline()
        sample = meter.sample()
        meter.stop()
        child.stdin.close()
    return {**json.loads(line), "measured": sample.share}


def rows(turns: dict[str, dict[str, Any]], times: int) -> dict[str, dict[str, Any]]:
    """The medians of each; they take turns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in turns}
    for _ in range(times):
        for name, turn in turns.items():
            found[name].append(take(turn))
            print(f"{name}: {found[name][-1]['tps']:.1f} tokens/s", file=sys.stderr)
    return {name: medians(answers) for name, answers in found.items()}


def medians(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure; texts must be the same every time."""
    texts = [answer.pop("texts", None) for answer in answers]
    if any(text != texts[0] for text in texts):
        raise SystemExit("the same prompts gave other texts")
    figures = {
        key: statistics.median(answer[key] for answer in answers) for key in answers[0] if answers[0][key] is not None
    }
    return {**figures, "texts": texts[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one turn of 16 new tokens each")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the speeds; duties take one")
    parser.add_argument("--no-mlx", action="store_true")
    args = parser.parse_args()
    times = 1 if args.quick else TURNS
    base = {"model": str(gguf()), "new": 16 if args.quick else 64, "threads": args.threads, "backend": "llamacpp"}
    one = {**base, "way": "ours", "threads": 1}
    plain = {**base, "way": "llamacpp_batched", "threads": 1}
    speeds = rows(
        {
            "ours": {**base, "way": "ours"},
            "sequential": {**base, "way": "llamacpp_sequential"},
            "batched": {**base, "way": "llamacpp_batched"},
        },
        times,
    )
    governed = rows(
        {"plain": plain, "free": one, "sliced": {**one, "longest_s": LONGEST_S}}
        | {str(duty): {**one, "duty": duty} for duty in DUTIES},
        times,
    )
    long = {**one, "long": True, "duty": 0.3}
    prefill = rows({"default": long, "longest_20_ms": {**long, "longest_s": LONGEST_S}}, times)
    batched = governed.pop("plain")
    free = governed["free"]
    report: dict[str, Any] = {
        "threads": args.threads,
        "llamacpp": {f"{name}_tps": round(row["tps"], 2) for name, row in speeds.items()},
        "duty": {
            str(duty): {
                "efficiency": round(governed[str(duty)]["tps"] / (duty * free["tps"]), 4),
                "held": round(governed[str(duty)]["held"], 4),
                "measured": round(governed[str(duty)]["measured"], 4),
            }
            for duty in DUTIES
        },
        "slices": {
            "longest_ms_asked": LONGEST_S * 1000,
            "p95_ms": round(governed["sliced"]["p95_ms"], 2),
            "cost": round(1 - governed["sliced"]["tps"] / free["tps"], 4),
        },
        "prefill": {
            name: {figure: round(row[figure], 2) for figure in ("longest_ms", "p95_ms")}
            for name, row in prefill.items()
        },
        "cpu": {"plain_batched": round(batched["cpu_s"] / free["cpu_s"], 4)}
        | {name: round(free["cpu_s"] / row["cpu_s"], 4) for name, row in governed.items() if row is not free},
        "same_texts": all(row["texts"] == free["texts"] for row in (*governed.values(), speeds["ours"])),
    }
    if not args.no_mlx:
        with tempfile.TemporaryDirectory() as folder:
            mlx = {**base, "model": str(convert(gguf(), Path(folder, "model"))), "backend": "mlx"}
            turns = {"ours": {**mlx, "way": "ours"}, "batch_generate": {**mlx, "way": "mlx_batch_generate"}}
            report["mlx"] = {f"{name}_tps": round(row["tps"], 2) for name, row in rows(turns, times).items()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()

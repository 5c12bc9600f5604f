"""Control against hostile bytes: how many documents, how many exceptions, how many looser duties. One JSON object.

    hatch run bench:fuzz [--documents N] [--seed S]

Every document is one of the seeds (the interop set and a few more), damaged up to eight times: bits, bytes, slices,
tokens, numbers at the edges, two documents spliced. For what still parses as a newer document, the duty in force must
not be looser than the document's own word: a share in 0..1 is taken as it is, anything else unusable holds at 0, and
no limit is in force only where the document gives none.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from oarbank_sdk.control import _state

INTEROP = Path(__file__).parents[1] / "tests" / "contracts" / "interop" / "control"
MORE = [
    b'{"seq": 1, "gpu_duty": 0.25, "threads": 2, "reason": "protection"}',
    b'{"seq": 7, "stop": true, "checkpoint": true, "gpu_duty": 0}',
    b'{"gpu_duty": null, "seq": 3, "pause": true, "x": {"a": [1, 2, {"b": "\\u00e9\\ud83d\\ude00"}]}}',
]
TOKENS = [
    b"true", b"false", b"null", b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"0.0", b"-0.0",
    b"-0", b"1.0000000000000002", b"-1e-9", b"9" * 5000, b"[" * 3000, b'{"a":' * 2000, b'"0.3"', b'"1"', b"[0.3]",
    b"{}", b"[]", b'"seq": 99', b'"gpu_duty": 0.5', b'"gpu_duty": "x"', b'"gpu_duty": true', b"\xff", b"\xef\xbb\xbf",
    b"\x00", b"\\u0000", b"\\ud800", b",", b":", b"}", b"]", b"1E1", b"2.5", b"-3", b"0.3", b"18446744073709551616",
]  # fmt: skip


def damage(rng: random.Random, data: bytearray, seeds: list[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(7)
    if kind == 0 and data:
        data[at % len(data)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data.insert(at, rng.randrange(256))
    elif kind == 2:
        del data[at : at + rng.choice((1, 1, 2, 5, 20))]
    elif kind == 3:
        data[at : at + rng.choice((0, 1, 4, 5))] = rng.choice(TOKENS)
    elif kind == 4:
        data[at:] = rng.choice(seeds)[at:]
    elif kind == 5:
        piece = data[at : at + rng.randrange(1, 30)]
        data[at:at] = piece
    else:  # a value after a colon becomes a token: most of what still parses comes from here
        colons = [i for i, byte in enumerate(data) if byte == 0x3A]
        if colons:
            start = rng.choice(colons) + 1
            end = start
            while end < len(data) and data[end] not in b",}":
                end += 1
            data[start:end] = rng.choice(TOKENS)


def looser(document: Any, duty: float | None) -> bool:
    """Whether `duty` allows more than the document says. Written apart from what it judges."""
    if "gpu_duty" not in document or document["gpu_duty"] is None:
        return duty is not None
    said = document["gpu_duty"]
    if duty is None:
        return True
    if type(said) is float and not math.isfinite(said):
        return duty != 0.0
    if type(said) in (int, float):
        return duty != min(max(said, 0), 1)
    return duty != 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    seeds = [path.read_bytes() for path in sorted(INTEROP.glob("*.json"))] + MORE
    counts: collections.Counter[str] = collections.Counter()
    examples: list[str] = []
    began = time.perf_counter()
    for _ in range(options.documents):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 8))):
            damage(rng, data, seeds)
        raw = bytes(data)
        applied = rng.choice((-1, 0, 5))
        try:
            state = _state(raw, applied)
        except Exception as fault:
            counts["exceptions"] += 1
            examples.append(f"{type(fault).__name__}: {raw[:200]!r}")
            continue
        if state is None:
            counts["ignored"] += 1
            continue
        counts["applied"] += 1
        counts["unusable_duty"] += state["gpu_duty_fault"] is not None
        bad = looser(json.loads(raw), state["gpu_duty"]) or not state["seq"] > applied
        bad = bad or not (state["threads"] is None or state["threads"] >= 1)
        counts["looser"] += bad
        if bad:
            examples.append(repr(raw[:200]))
    seconds = round(time.perf_counter() - began, 1)
    result: dict[str, object] = {"documents": options.documents, "seed": options.seed, "seconds": seconds}
    for name in ("applied", "ignored", "unusable_duty", "exceptions", "looser"):
        result[name] = counts[name]
    result["examples"] = examples[:5]
    json.dump(result, sys.stdout, indent=1)
    print()
    return 1 if counts["exceptions"] or counts["looser"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

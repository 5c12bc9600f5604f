"""Do the schemas and the generated models accept the same documents? For long; one JSON object.

    hatch run bench:agreement [--documents N] [--seed S]

The tests do the same with a small budget; this is for as many documents as there is time for. Each contract gets an
equal share: its examples, a pool that hypothesis-jsonschema draws, and seeded damage of both.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from oarbank_sdk.contracts import catalogue
from tests.contracts import agreement, examples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--pool", type=int, default=60, help="documents drawn per contract")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    kinds = catalogue.kinds()
    each = options.documents // len(kinds)
    judged: dict[str, int] = {}
    found: list[dict[str, object]] = []
    for kind in kinds:
        pool = [*examples.readable(kind), *agreement.draw_pool(kind, options.pool, start=options.seed)]
        documents = [*pool, *agreement.damaged(pool, max(each - len(pool), 0), start=options.seed)]
        judged[kind], differences = agreement.disagreements(kind, documents)
        found += [{"kind": kind, "how": how, "document": document} for how, document in differences]
        print(f"{kind}: {judged[kind]} judged, {len(differences)} differences", file=sys.stderr)
    result = {
        "documents": sum(judged.values()),
        "seed": options.seed,
        "seconds": round(time.perf_counter() - began, 1),
        "judged": judged,
        "disagreements": len(found),
        "examples": found[:5],
    }
    json.dump(result, sys.stdout, indent=1)
    print()
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

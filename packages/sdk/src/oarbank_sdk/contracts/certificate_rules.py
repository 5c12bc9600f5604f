"""What the schema of a level's certificate cannot say: that the level follows from the windows that it lists.

Takes a value that the schema accepts and yields faults. Pure, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_sdk.contracts.faults import Fault, found, pointer

SLACK = 1e-6
"""By so much a harm may differ from what the windows give, or be above the target: sums are rounded."""


def certificate_faults(value: Any) -> Iterator[Fault]:
    """Yield what does not follow: a level that did not pass, or one whose windows say otherwise."""
    yield from _level(value)
    seen: set[float] = set()
    for i, tried in enumerate(value["levels"]):
        if tried["level"] in seen:
            message = f"must be listed once; found {found(tried['level'])} again"
            yield Fault(pointer(("levels", i, "level")), "unique-levels", message)
        seen.add(tried["level"])
        faults = list(_pairs(i, tried))
        yield from faults or _tried(i, tried, value["target"], value["least_pairs"])


def _level(value: Any) -> Iterator[Fault]:
    level = value["level"]
    if level is None:
        if value.get("reason") is None:
            yield Fault("", "reason-of-none", "must say why where there is no level; found no reason")
        return
    verdicts = {tried["level"]: tried["verdict"] for tried in value["levels"]}
    if level not in verdicts:
        yield Fault("/level", "level-was-tried", f"must be among the levels; found {found(level)}, which is not")
    for tried, verdict in verdicts.items():
        if tried <= level and verdict != "pass":
            message = f"must have passed, and every level below it; found {tried}: {verdict}"
            yield Fault("/level", "level-passed", message)


def _pairs(i: int, tried: Any) -> Iterator[Fault]:
    for j, pair in enumerate(tried["pairs"]):
        at = ("levels", i, "pairs", j)
        kinds = sorted(pair[name]["kind"] for name in ("first", "second"))
        if kinds != ["paused", "running"]:
            message = f"must hold a paused and a running window; found {' and '.join(kinds)}"
            yield Fault(pointer(at), "pair-kinds", message)
        elif pair.get("fault") is None and any((pair[name]["progress"] or -1) < 0 for name in _must(pair)):
            yield Fault(pointer(at), "pair-counts", "must have progress, or say why it does not count; found neither")


def _must(pair: Any) -> list[str]:
    """The windows of a pair that must show progress: a program may stand still while the work runs."""
    return [name for name in ("first", "second") if pair[name]["kind"] == "paused" or pair[name]["progress"] != 0]


def _tried(i: int, tried: Any, target: float, least_pairs: int) -> Iterator[Fault]:
    counted = [pair for pair in tried["pairs"] if pair.get("fault") is None]
    harm = _harm(counted)
    if (harm is None) != (tried["harm"] is None) or (harm is not None and abs(harm - tried["harm"]) > SLACK):
        message = f"must be what the windows give, {found(harm)}; found {found(tried['harm'])}"
        yield Fault(pointer(("levels", i, "harm")), "harm-follows-windows", message)
    elif tried["verdict"] == "pass":
        for name in ("harm", "high"):
            if tried[name] is None or tried[name] > target + SLACK:
                message = f"must be at most the target, {target}, where the level passes; found {found(tried[name])}"
                yield Fault(pointer(("levels", i, name)), "pass-below-target", message)
        if len(counted) < least_pairs:
            message = f"must hold {least_pairs} pairs that count where the level passes; found {len(counted)}"
            yield Fault(pointer(("levels", i, "pairs")), "pass-pairs", message)


def _harm(pairs: list[Any]) -> float | None:
    rates = {}
    for kind in ("paused", "running"):
        listed = [pair[name] for pair in pairs for name in ("first", "second") if pair[name]["kind"] == kind]
        if not listed:
            return None
        rates[kind] = sum(one["progress"] for one in listed) / sum(one["window_s"] for one in listed)
    return 1 - rates["running"] / rates["paused"] if rates["paused"] else None  # 0: too small for a double

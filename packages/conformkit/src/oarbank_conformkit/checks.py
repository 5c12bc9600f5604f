"""A check: one rule, one verdict, and the sentence that says why.

Five answers exist. `pass` and `fail` are judged. `unknown` could not be told, and is not green. `skip` does not apply
here, and says why. `warn` is advice. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Status = Literal["pass", "fail", "unknown", "skip", "warn"]
Suite = Literal["manifest", "protocol", "runner"]

DETAIL_CHARS = 600
"""A detail is cut here, as the report's contract says."""

_LAST_WORDS = re.compile(r"; last lines? of stderr:\s")


@dataclass(frozen=True, slots=True)
class Check:
    """What was checked and what came out; `evidence` holds the numbers that the verdict rests on."""

    suite: Suite
    name: str
    status: Status
    detail: str
    rule: str
    took_s: float | None = None
    evidence: Mapping[str, Any] | None = None


ENDED_EARLY: Mapping[str, object] = {"ended_early": True}
"""Evidence of a rule that nobody was judged by, because the task had ended: a summary must not pass over it."""


def check(
    suite: Suite, rule: str, name: str, status: Status, detail: str, evidence: Mapping[str, Any] | None = None
) -> Check:
    """Return a check with its detail cut to length."""
    if len(detail) > DETAIL_CHARS:
        detail = detail[: DETAIL_CHARS - 3] + "..."
    return Check(suite, name, status, detail, rule, evidence=evidence)


def timed(checks: Iterable[Check], took_s: float) -> list[Check]:
    """Return the checks of one run, each with the time that the run took."""
    return [replace(one, took_s=round(took_s, 3)) for one in checks]


def said_once(one: Check, shown: set[str]) -> Check:
    """Return the check, without the runner's last words where an earlier check has shown the same; notes new ones."""
    found = _LAST_WORDS.search(one.detail)
    if found is None:
        return one
    words = one.detail[found.end() :]
    if words in shown:
        return replace(one, detail=f"{one.detail[: found.start()]}; its stderr ends as above")
    shown.add(words)
    return one

"""What came of a job: its result, why there is none, or that nobody could tell whether it held its duty.

Pure: what the runner left and what was measured go in, an exit code and one line come out. A result is judged by its
contract and by nothing else; what it is worth is for whoever asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oarbank_sdk.contracts.judge import judge

RESULT, NO, COULD_NOT_TELL = 0, 1, 3
SHOWN = 600
"""Characters of a runner's own words that a line shows."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a runner ended and what it left behind."""

    code: int | None  # exit status or negative signal; None: it had to be killed
    stopped: str | None  # why it was told to stop; None: it was not
    result: bytes | None
    failure: bytes | None
    missing: tuple[str, ...]  # files a result names that are not there
    stderr: str


@dataclass(frozen=True, slots=True)
class Held:
    """What was measured over the whole run."""

    samples: int  # whole ones, after the baseline and outside of pauses
    unread: int  # of which so many could not be read
    share: float | None  # mean of those that could; None: none could


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to say at the end."""

    exit: int
    line: str
    result: Mapping[str, Any] | None = None  # the result's document, where there is a valid one


def outcome(end: JobEnd, held: Held | None) -> Outcome:
    """Return what to say; `held` is None where nothing was to be measured."""
    found = _outcome(end)
    if held is not None and held.samples and held.unread == held.samples:
        why = f"could not tell whether it held its duty: none of {held.samples} samples could be read"
        return Outcome(COULD_NOT_TELL, f"{found.line}; {why}", found.result)
    return found


def _outcome(end: JobEnd) -> Outcome:
    if end.code == 0 and end.result is not None:
        return _result(end)
    if end.code is None:
        return Outcome(NO, f"stopped: {end.stopped or 'it had to end'}; it did not end by itself and was killed")
    failure = _failure(end.failure)
    if end.stopped is not None:
        told = "" if failure is None else f"; {failure}"
        return Outcome(NO, f"stopped: {end.stopped}; {_ended(end.code)}{told}")
    if failure is not None:
        return Outcome(NO, f"failed: {failure}; {_ended(end.code)}")
    if end.code == 0:
        return Outcome(NO, "failed: it must leave result.json when it ends with status 0; found none")
    return Outcome(NO, f"failed: {_ended(end.code)} and left no failure.json{_last_words(end.stderr)}")


def _result(end: JobEnd) -> Outcome:
    verdict = judge("result-envelope-1", end.result or b"")
    if not verdict.valid:
        return Outcome(NO, f"failed: {verdict.faults[0].line('result.json')}")
    if end.missing:
        found = f"no such file in its folder: {', '.join(end.missing)[:SHOWN]}"
        return Outcome(NO, f"failed: result.json: files it names must be there; found {found}")
    return Outcome(RESULT, "done", verdict.value)


def _failure(data: bytes | None) -> str | None:
    """What failure.json says, or what is wrong with it; None without one."""
    if data is None:
        return None
    verdict = judge("runner-failure-1", data)
    if not verdict.valid:
        return f"its failure.json cannot be used: {verdict.faults[0].line('')}"[:SHOWN]
    detail = verdict.value.get("detail") or ""
    return _one_line(f"{verdict.value['reason']}{': ' if detail else ''}{detail}")


def _ended(code: int) -> str:
    return f"it ended with status {code}" if code >= 0 else f"it was ended by signal {-code}"


def _last_words(stderr: str) -> str:
    lines = [text for text in stderr.splitlines() if text.strip()]
    return f"; its last words: {_one_line(lines[-1])}" if lines else ""


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:SHOWN]

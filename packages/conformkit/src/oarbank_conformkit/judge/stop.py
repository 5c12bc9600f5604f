"""Judge a stop: acknowledged in time, gone in time.

Pure. Both bounds are held against what the kit saw, less what a busy machine took: an honest runner that got no
processor is not accused. So three answers: in time; late by more than the machine can explain; or it cannot be told,
with the figures. A stop may be answered with the result, if it is the whole one: a part that poses as the whole would
be believed for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import ENDED_EARLY, Check, Status, check
from oarbank_conformkit.evidence import RunSeen, StopSeen
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.run import own_words, payload_digest, payload_fault, result_payload
from oarbank_conformkit.result_schema import ResultSchema

ACKNOWLEDGE_S = 2.0
"""Seconds from the nudge to the acknowledgement, as the published kit holds it."""

STOPPED_CODE = 75
"""Exit status of a runner that was stopped before it had a result."""

BUSY: dict[str, object] = {"machine_busy": True}
"""In the evidence of a check that could not be told because the machine was busy: another run may tell."""


DEAD_OF_SIGTERM = (-15, 128 + 15)
"""How a runner ends that SIGTERM ended: by itself, or by a shell around it."""

IGNORE_SIGTERM = (
    "Ignore SIGTERM before you begin, signal.signal(signal.SIGTERM, signal.SIG_IGN), since the stop is in the control "
    "document; or let a handler mark the stop, and answer at the next safe point. See docs/write-a-runner.md."
)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: Status
    detail: str


def judge_stop(title: str, grace_s: float, seen: StopSeen | None) -> list[Check]:
    """Return the two stop checks of a golden, which are unknown where it could not be started."""
    names = (
        f"{title}: acknowledges a stop within {ACKNOWLEDGE_S} s",
        f"{title}: exits within {grace_s:g} s of a stop",
    )
    rules = ("stop.acknowledged", "stop.exit")
    not_started = _Answer("unknown", "the runner could not be started")
    answers = (not_started, not_started) if seen is None else (acknowledged(seen), ended(seen))
    return [
        check("runner", rule, name, answer.status, answer.detail, None if seen is None else _evidence(seen))
        for rule, name, answer in zip(rules, names, answers, strict=True)
    ]


def judge_stop_result(
    module: Module, golden: Golden, first: str | None, seen: StopSeen | None, schema: ResultSchema | None = None
) -> list[Check]:
    """Return the check of the result that answered a stop of a golden; none where no result did.

    `first` is the digest of the golden's first run, None where it gave none.
    """
    if seen is None or seen.ack != "result":
        return []
    name = f"golden {golden.name}: the result it left after a stop is whole"
    if first is None:
        why = "the first run gave no digest to compare with"
        return [check("runner", "stop.result_true", name, "unknown", why)]
    left = RunSeen(exit=seen.code, result=seen.result, missing_files=seen.missing_files)
    payload, fault = result_payload(module, left)
    digest, fault = (None, fault) if payload is None else payload_digest(module, payload)
    if payload is not None and (broken := payload_fault(schema, payload)) is not None:
        return [check("runner", "stop.result_true", name, "fail", broken)]
    if digest is not None and digest in (golden.digest, first):
        return [check("runner", "stop.result_true", name, "pass", f"{digest[:12]}...")]
    wrong = fault if digest is None else f"must have the digest {first}; found {digest}"
    advice = "Stopped before the end, leave failure.json (acknowledge_stop does it) and no result.json."
    return [check("runner", "stop.result_true", name, "fail", f"{wrong}. {advice}")]


def judge_terminated(title: str, seen: StopSeen | None) -> Check:
    """Return the check of a stop with SIGTERM right behind it: advice, since the stop itself is judged without."""
    answer = _Answer("unknown", "the runner could not be started") if seen is None else _terminated(seen)
    name = f"{title}: answers a stop that comes with SIGTERM"
    evidence = None if seen is None else {"acknowledged_s": seen.ack_s, "exit_s": seen.exit_s, "code": seen.code}
    return check("runner", "stop.sigterm", name, answer.status, answer.detail, evidence)


def _terminated(seen: StopSeen) -> _Answer:
    if (none := _nothing_to_stop(seen)) is not None:
        return none
    if seen.ack is None and seen.exit_s is None:
        return _Answer("unknown", f"it did not answer within {seen.alive_s:.1f} s; see stop.acknowledged")
    if seen.ack is not None and seen.ack_fault is None and seen.code not in DEAD_OF_SIGTERM:
        return _Answer("pass", _answer(seen))
    must = "an agent sends SIGTERM right behind a stop, and must get the same answer"
    if seen.ack is None:
        return _Answer("warn", f"{must}; found no word{_how(seen)}. {IGNORE_SIGTERM}")
    wrong = ", but then died of it" if seen.ack_fault is None else f" with a fault, {seen.ack_fault}"
    return _Answer("warn", f"{must}; it acknowledged{wrong}{_how(seen)}. {IGNORE_SIGTERM}")


def judge_duty_stop(title: str, seen: StopSeen) -> Check:
    """Return the one stop check of a duty spec: both bounds together, the worse one speaking."""
    order: list[Status] = ["fail", "unknown", "skip", "pass"]
    both = sorted((acknowledged(seen), ended(seen)), key=lambda answer: order.index(answer.status))
    detail = "; ".join(answer.detail for answer in both) if both[0].status == "pass" else both[0].detail
    evidence = _evidence(seen)
    if both[0].status == "unknown" and seen.outcome != "no_phase":
        evidence |= BUSY
    return check("runner", "duty.stop", f"{title}: stops while holding the duty", both[0].status, detail, evidence)


def acknowledged(seen: StopSeen) -> _Answer:
    """Say whether the acknowledgement came within ACKNOWLEDGE_S."""
    if (none := _nothing_to_stop(seen)) is not None:
        return none
    limit = f"at most {ACKNOWLEDGE_S} s are allowed"
    if seen.ack_fault is not None:
        return _Answer("fail", f"failure.json must acknowledge the stop; {seen.ack_fault}")
    if seen.ack_s is not None and seen.ack_s <= ACKNOWLEDGE_S:
        return _Answer("pass", f"{_answer(seen)}; {limit}")
    came = "no acknowledgement" if seen.ack_s is None else f"the acknowledgement after {seen.ack_s:.3f} s"
    waited = f"found {came}, the last look without one after {seen.absent_s:.3f} s"
    if seen.ack_s is None and not _ran_on(seen):
        return _Answer(
            "fail", f"must leave failure.json (fault transient) or result.json; found neither at its end{_how(seen)}"
        )
    if seen.absent_s - seen.disturbed_ack_s > ACKNOWLEDGE_S:
        return _Answer("fail", f"{limit}; {waited}")
    return _Answer("unknown", f"{limit}; {waited}, of which a busy machine took {seen.disturbed_ack_s:.3f} s")


def ended(seen: StopSeen) -> _Answer:
    """Say whether the runner exited within its grace, with the right status."""
    if (none := _nothing_to_stop(seen)) is not None:
        return none
    wanted = 0 if seen.ack == "result" else STOPPED_CODE
    limit = f"at most {seen.grace_s:g} s are allowed"
    late = seen.alive_s if seen.exit_s is None else seen.exit_s
    if late > seen.grace_s:
        came = "it was still running and was killed" if seen.exit_s is None else "it ended"
        if seen.alive_s - seen.disturbed_s > seen.grace_s:
            return _Answer("fail", f"{limit}; {came} after {late:.3f} s")
        return _Answer(
            "unknown", f"{limit}; {came} after {late:.3f} s, of which a busy machine took {seen.disturbed_s:.3f} s"
        )
    if seen.code != wanted:
        why = "after its result" if wanted == 0 else "when stopped"
        return _Answer("fail", f"must exit {wanted} {why}{_how(seen)}")
    return _Answer("pass", f"exit {seen.code} after {late:.3f} s; {limit}")


def _nothing_to_stop(seen: StopSeen) -> _Answer | None:
    if seen.outcome == "no_phase" and seen.code:
        return _Answer("unknown", f"it ended after {seen.lasted_s:.1f} s, before it could be stopped{_how(seen)}")
    if seen.outcome == "no_phase":
        advice = (
            f"it wrote no phase in {seen.lasted_s:.1f} s. Write one when the work begins, or nothing can be stopped"
        )
        return _Answer("skip", advice)
    if seen.outcome == "finished_first":
        advice = (
            f"it finished after {seen.lasted_s:.1f} s, before it could be stopped. Give it more to do"
        )
        return _Answer("skip", advice)
    return None


def _answer(seen: StopSeen) -> str:
    """How it answered; a result may be an end that would have come anyway, and then says little of the stop."""
    if seen.ack == "result":
        return f"answered with its result, as a task that hears no stop and ends would, after {seen.ack_s:.3f} s"
    return f"acknowledged ({seen.ack}.json) after {seen.ack_s:.3f} s"


def _ran_on(seen: StopSeen) -> bool:
    return seen.exit_s is None or seen.exit_s > ACKNOWLEDGE_S


def _how(seen: StopSeen) -> str:
    if seen.code is None:
        return "; found it killed by the kit"
    code = f"signal {-seen.code}" if seen.code < 0 else f"exit {seen.code}"
    return f"; found {code}{own_words(None, seen.stderr)}"


def _evidence(seen: StopSeen) -> dict[str, object]:
    early: Mapping[str, object] = ENDED_EARLY if seen.outcome == "finished_first" else {}
    return {
        **early,
        "outcome": seen.outcome,
        "acknowledged_s": seen.ack_s,
        "limit_s": ACKNOWLEDGE_S,
        "exit_s": seen.exit_s,
        "grace_s": seen.grace_s,
        "code": seen.code,
        "disturbed_s": round(seen.disturbed_s, 3),
    }

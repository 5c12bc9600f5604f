"""Lines of an `agent-journal-1`: what was heard, read back exactly, and orders, written out.

A journal holds what the law heard and what it ordered, one JSON object a line. Reading refuses a wrong line with its
number and never guesses; orders in it are passed over, since the law gives them again. Pure: texts in, texts out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from oarbank_agent_check import actions as orders
from oarbank_agent_check import inputs as heard
from oarbank_agent_check.actions import Action
from oarbank_agent_check.admission import GPU_JOBS
from oarbank_agent_check.inputs import FARTHEST_S, Input
from oarbank_sdk import strictjson

INPUTS: Mapping[str, type[Any]] = {
    "job": heard.Job,
    "job_end": heard.JobEnd,
    "protected": heard.Protected,
    "pressure": heard.Pressure,
    "sample": heard.SampleSeen,
    "policy": heard.Policy,
    "tick": heard.Tick,
}
ACTIONS: Mapping[str, type[Action]] = {
    "duty": orders.SetDuty,
    "pause": orders.Pause,
    "resume": orders.Resume,
    "stop": orders.Stop,
    "release": orders.Release,
    "ban": orders.Ban,
    "unban": orders.Unban,
    "admit": orders.Admit,
    "hold": orders.Hold,
}
_LEFT_OUT = frozenset({"levels", "baseline", "low", "high", "program", "speed"})
_KINDS = {kind: name for name, kind in [*INPUTS.items(), *ACTIONS.items()]}


class WrongLine(ValueError):
    """A line that is no journal's: which one, where in it, what must hold, what was found."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"line {number}: {message}")


def read(lines: Iterable[bytes]) -> Iterator[Input]:
    """Give the inputs of a journal's lines, in order; empty lines and orders are passed over.

    Raises `WrongLine` for a line that is none, and where time goes backwards from one input to the next.
    """
    last: float | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = input_of(strictjson.loads(line))
        except ValueError as fault:
            raise WrongLine(number, str(fault)) from None
        if told is None:
            continue
        if last is not None and told.t < last:
            raise WrongLine(number, f"/t: must not go backwards, the input before has {last}; found {told.t}")
        last = told.t
        yield told


def input_of(value: Any) -> Input | None:
    """Read one line's value; None for an order. ValueError says where, what must hold and what was found."""
    if not isinstance(value, dict):
        raise ValueError(f"must be an object; found {_found(value)}")
    kind = value.get("kind")
    if isinstance(kind, str) and kind in ACTIONS:
        return None
    shape = INPUTS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise ValueError(f"/kind: must be one of {', '.join([*INPUTS, *ACTIONS])}; found {_found(kind)}")
    told = {}
    for field in fields(shape):
        here = value.get(field.name)
        optional = field.default is not MISSING or field.default_factory is not MISSING
        if here is None and optional:
            continue
        if field.name not in value:
            raise ValueError(f"/{field.name}: must be there in a line of kind {kind}; found nothing")
        told[field.name] = _FIELDS[field.name].read(here, f"/{field.name}")
    return shape(**told)


def value_of(entry: Input | Action) -> dict[str, Any]:
    """Give the line's value of an input or an order; what is absent or has its default is left out of an input."""
    value: dict[str, Any] = {"t": entry.t, "kind": _KINDS[type(entry)]}
    if isinstance(entry, Action):
        told = {field.name: getattr(entry, field.name) for field in fields(entry)}
        because = [value_of(one) for one in told.pop("because")]
        return value | told | {"because": because}
    for field in fields(entry):
        here = getattr(entry, field.name)
        if field.name in _LEFT_OUT and (here is None or here is False or here == {}):
            continue
        value[field.name] = dict(here) if isinstance(here, Mapping) else here
    return value


def line_of(entry: Input | Action) -> str:
    """Give the line, without its end; the same text for the same entry."""
    return json.dumps(value_of(entry), allow_nan=False, separators=(", ", ": "))


@dataclass(frozen=True, slots=True)
class _Field:
    """What one field must be, in words and as a test."""

    must: str
    holds: Callable[[Any], bool]

    def read(self, value: Any, where: str) -> Any:
        if not self.holds(value):
            raise ValueError(f"{where}: must be {self.must}; found {_found(value)}")
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _part(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


_TRUTH = _Field("true or false", lambda value: isinstance(value, bool))
_SHARE = _Field("a number, 0 or more, or null", lambda value: value is None or (_number(value) and value >= 0))
_NAME = _Field("a text that is not empty", _text)
_FIELDS: Mapping[str, _Field] = {
    "t": _Field("a number of seconds, -1e12 to 1e12", lambda value: _number(value) and abs(value) <= FARTHEST_S),
    "job": _NAME,
    "module": _NAME,
    "program": _NAME,
    "cooperative": _TRUTH,
    "pausable": _TRUTH,
    "active": _TRUTH,
    "baseline": _TRUTH,
    "speed": _Field("learning, unknown, or null", lambda value: value in (None, "learning", "unknown")),
    "gpu_use": _Field("none, shared or exclusive", lambda value: value in ("none", "shared", "exclusive")),
    "gpu_jobs": _Field(f"one of {', '.join(GPU_JOBS)}", lambda value: value in GPU_JOBS),
    "level": _Field("a number, 0 to 1, or null", _part),
    "levels": _Field(
        "an object of numbers, 0 to 1",
        lambda value: isinstance(value, dict) and all(map(_part, value.values())) and all(value),
    ),
    "value": _Field("a number, or null", lambda value: value is None or _number(value)),
    "share": _SHARE,
    "low": _SHARE,
    "high": _SHARE,
}


def _found(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."

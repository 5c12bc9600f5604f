"""Read what a runner says: event lines, duty reports, the doctor's last line. The kit and the agent share this reader.

A runner may be killed in the middle of a line, and other code may write to the same stream, so only complete lines
count and a bad one is skipped. A `gpu_duty` report is different: it is evidence, so one that is unusable is an error
with a reason and never becomes a plausible number. Nothing is clamped and nothing is filled in.

Pure: bytes and values come in as arguments. Standard library only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_DEVICE = re.compile(r"[a-z][a-z0-9_]*")
_EVENT_KEYS = frozenset({"t", "kind", "level", "msg", "fraction", "name", "value", "data", "files"})
_REPORT_KEYS = frozenset({"duty", "device", "window_s", "longest_unit_s", "busy_source"})


class ReportError(ValueError):
    """A gpu_duty event that cannot be used; the text is the reason."""


@dataclass(frozen=True, slots=True)
class DutyReport:
    """One interval of a governor, as it reported it."""

    t: float  # end of the interval, Unix seconds
    share: float  # 0..1 of the interval in which units kept the device busy
    duty: float | None  # 0..1 asked over the whole interval; None: no duty was in force
    device: str  # gpu, cpu, or a name that readers treat as gpu
    window_s: float | None = None  # > 0, length of the interval
    longest_unit_s: float | None = None  # >= 0
    busy_source: str | None = None  # wall or device
    extra: Mapping[str, Any] = field(default_factory=dict)  # every other key, units and idle_s among them


def complete_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Split bytes into the lines that end in LF, without LF and one trailing CR, and the unfinished rest."""
    *lines, rest = data.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines], rest


def events(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the JSON objects among the lines, in order; blank, broken and foreign lines are skipped."""
    return [value for line in lines if isinstance(value := _value(line), dict)]


def duty_report(event: Mapping[str, Any]) -> DutyReport | None:
    """Return the report that an event carries, or None when it is no `gpu_duty` metric.

    `duty`, `device` and the optional keys are taken from `data`, else from the top level. Raises ReportError when it is
    such a metric and a value is missing, of the wrong type, not finite or out of range.
    """
    if event.get("kind") != "metric" or event.get("name") != "gpu_duty":
        return None
    data = event.get("data", {})
    if not isinstance(data, Mapping):
        raise ReportError(f"gpu_duty event: data must be an object; found {_found(data)}")
    top = {key: value for key, value in event.items() if key not in _EVENT_KEYS}
    merged: dict[str, Any] = {**top, **data}
    return DutyReport(
        t=_number(event, "t"),
        share=_number(event, "value", 0, 1),
        duty=None if _present(merged, "duty") is None else _number(merged, "duty", 0, 1),
        device=_device(merged),
        window_s=_window(merged),
        longest_unit_s=None if merged.get("longest_unit_s") is None else _number(merged, "longest_unit_s", 0),
        busy_source=_source(merged),
        extra={key: value for key, value in merged.items() if key not in _REPORT_KEYS},
    )


def doctor_line(stdout: bytes) -> bytes:
    """Return the line of a doctor's stdout that holds its answer: the last one, without its line end.

    Library chatter before it does no harm. An answer printed over several lines leaves a lone brace here.
    """
    lines = stdout.rstrip(b"\r\n").split(b"\n")
    return lines[-1].removesuffix(b"\r")


def _value(line: bytes) -> Any:
    try:
        # Decoded here because the decoder would also take UTF-16 and UTF-32.
        return json.loads(line.decode("utf-8"), parse_constant=_not_json)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, integers of thousands of digits
        return None


def _not_json(text: str) -> Any:
    raise ValueError(text)


def _present(values: Mapping[str, Any], key: str) -> Any:
    if key not in values:
        raise ReportError(f"gpu_duty event: {key} must be present; found none")
    return values[key]


def _number(values: Mapping[str, Any], key: str, low: float = -math.inf, high: float = math.inf) -> float:
    value = _present(values, key)
    # A bool is an int to Python, and true would read as a full share.
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        number = float(value) if usable else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not low <= number <= high:
        raise ReportError(f"gpu_duty event: {key} must be {_range(low, high)}; found {_found(value)}")
    return number


def _range(low: float, high: float) -> str:
    if math.isinf(low):
        return "a finite number"
    return f"a number from {low:g} to {high:g}" if math.isfinite(high) else f"a finite number of at least {low:g}"


def _device(values: Mapping[str, Any]) -> str:
    value = _present(values, "device")
    if not isinstance(value, str) or not _DEVICE.fullmatch(value):
        raise ReportError(f"gpu_duty event: device must be a name such as gpu or cpu; found {_found(value)}")
    return value


def _window(values: Mapping[str, Any]) -> float | None:
    if values.get("window_s") is None:
        return None
    window_s = _number(values, "window_s", 0)
    if window_s == 0:
        raise ReportError("gpu_duty event: window_s must be above 0; found 0")
    return window_s


def _source(values: Mapping[str, Any]) -> str | None:
    value = values.get("busy_source")
    if value is not None and not isinstance(value, str):
        raise ReportError(f"gpu_duty event: busy_source must be text; found {_found(value)}")
    return value


def _found(value: Any) -> str:
    return repr(value)[:80]

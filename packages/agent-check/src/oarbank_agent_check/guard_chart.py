"""The pictures of a guard's page, as SVG: a program's pressure, and what a job was asked and held, over time.

They hold no text, so that they may be stretched to any width; the page writes the scales beside them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oarbank_agent_check.history import GAP_S, JobHistory, Point, ProgramHistory

WIDTH, HEIGHT = 1000.0, 100.0
MOST_PRESSURE = 2.0


@dataclass(frozen=True, slots=True)
class Span:
    """What a picture shows, in seconds on one clock; `last` is above `first`."""

    first: float
    last: float

    def x(self, t: float) -> float:
        """Give a moment's place, at the edge where it is outside."""
        return min(max((t - self.first) / (self.last - self.first), 0.0), 1.0) * WIDTH

    def holds(self, t: float) -> bool:
        """Say whether it shows a moment."""
        return self.first <= t <= self.last


def pressure(told: ProgramHistory, span: Span) -> str:
    """Draw when a program used the GPU, its pressure up to 2, and the target."""
    limits = [_y(one / MOST_PRESSURE) for one in (1.0, 1.99)]
    lines = [_line([(0.0, y), (WIDTH, y)], "bad", "4 4") for y in limits]
    drawn = [
        _line([(span.x(t), _y(value / MOST_PRESSURE)) for t, value in part], "press")
        for part in _parts(told.pressure, span)
    ]
    stale = [_mark(span.x(t)) for t, value in told.pressure if value is None and span.holds(t)]
    return _svg([*_spans(told.active, span), *lines, *stale, *drawn])


def top_of(told: JobHistory, span: Span) -> float:
    """Give the share at the top of a job's picture: 1, or a half where that is room enough."""
    ordered = {t for t, _ in told.asked}
    free = None in (duty for t, duty in told.asked if span.holds(t)) or any(
        begin not in ordered for begin, end in told.runs if end is None or end >= span.first
    )
    most = max([0.0, *(share for t, share in [*told.held, *told.asked] if share is not None and span.holds(t))])
    return 1.0 if free or most > 0.5 else 0.5


def shares(told: JobHistory, span: Span) -> str:
    """Draw a job's pauses, its duty as steps, and what it held; no limit is the top, which `top_of` gives."""
    top = top_of(told, span)
    held = [_line([(span.x(t), _y(value / top)) for t, value in part], "held") for part in _parts(told.held, span)]
    unread = [_mark(span.x(t)) for t, value in told.held if value is None and span.holds(t)]
    return _svg([*_spans(told.pauses, span), *unread, *_steps(told, span, top), *held])


def _steps(told: JobHistory, span: Span, top: float) -> list[str]:
    """The duty in force from one order to the next, while a job ran."""
    drawn = []
    for begin, end in told.runs:
        until = span.last if end is None else end
        if until < span.first:
            continue
        orders = [(t, duty) for t, duty in told.asked if begin <= t < until]
        moments = [(begin, None), *orders] if not orders or orders[0][0] > begin else orders
        points: list[tuple[float, float]] = []
        for (t, duty), after in zip(moments, [*(t for t, _ in moments[1:]), until], strict=True):
            height = _y(1.0 if duty is None else duty / top)
            points += [(span.x(t), height), (span.x(after), height)]
        drawn.append(_line(points, "asked", width=5))
    return drawn


def _parts(points: Sequence[Point], span: Span) -> Iterable[list[tuple[float, float]]]:
    """The points that are known, split where one is not and where too long nothing came."""
    part: list[tuple[float, float]] = []
    for t, value in points:
        if not span.holds(t):
            continue
        if part and (value is None or t - part[-1][0] > GAP_S):
            yield part
            part = []
        if value is not None:
            part.append((t, value))
    if part:
        yield part


def _spans(spans: Sequence[tuple[float, float | None]], span: Span) -> list[str]:
    found = []
    for begin, end in spans:
        left, right = span.x(begin), span.x(span.last if end is None else end)
        if right > left:
            found.append(f'<rect x="{left:.1f}" y="0" width="{right - left:.1f}" height="100" fill="var(--span)"/>')
    return found


def _mark(x: float) -> str:
    """A moment at which nobody could tell."""
    return f'<rect x="{x - 1:.1f}" y="96" width="2" height="4" fill="var(--bad)"/>'


def _line(points: Sequence[tuple[float, float]], colour: str, dashes: str = "", width: int = 2) -> str:
    told = points if len(points) > 1 else [*points, (points[0][0] + 2, points[0][1])]
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in told)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<polyline points="{where}" fill="none" stroke="var(--{colour})" stroke-width="{1 if dashes else width}"'
        f' vector-effect="non-scaling-stroke"{dashed}/>'
    )


def _y(part: float) -> float:
    return HEIGHT - min(max(part, 0.0), 1.0) * HEIGHT


def _svg(parts: Sequence[str]) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img">{inner}</svg>'

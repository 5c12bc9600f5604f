"""How much of the GPU jobs may have together beside one protected program: pressure in, thousandths of its time out.

A budget starts at the level certified beside the program, shrinks when the program slows and grows back while it does
not; a metric that has gone silent counts as the program being at its target. It never passes the level. Counted in
whole thousandths, always rounded down, so that nothing ever adds up to more. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from oarbank_agent_check.inputs import Input, Pressure, Protected

WHOLE = 1000
"""Thousandths in the whole time of a GPU; a duty is written to 0.001."""
LEAST = 5
"""Thousandths; a smaller budget is 0: a unit could then run about once in minutes."""
AT_TARGET = 1.0
"""The pressure at which a program has slowed to its owner's target; halves the budget (the brief)."""
AT_TWICE = 2.0
"""The pressure at twice the target: the budget is 0 at once (the brief)."""
HALVE_S = 20.0
"""Seconds from one halving to the next: the metric needs that long to show what the last one did."""
GROW = 50
"""Thousandths that a budget grows by after a clean minute (the brief: 0.05 a minute)."""
GROW_S = 60.0
"""Seconds without a violation before a step of growth (the brief)."""
STALE_S = 10.0
"""Seconds without a row after which a metric is stale."""
SLACK_S = 1e-9
"""Moments are sums of decimals: 20 s may come out a hair short."""

ANY = ""
"""The module that stands for all without a level of their own."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Thousandths of the GPU's time: what was certified, and what of it is left now."""

    level: int
    left: int

    def cut(self) -> Budget:
        """Halve it; below `LEAST` nothing is left."""
        half = self.left // 2
        return replace(self, left=half if half >= LEAST else 0)

    def grown(self) -> Budget:
        """One step up, never above the level."""
        return replace(self, left=min(self.level, self.left + GROW))


@dataclass(frozen=True, slots=True)
class Beside:
    """A protected program that uses the GPU now, and the budgets beside it, by module (`ANY`: the others)."""

    told: Protected
    budgets: Mapping[str, Budget]
    clean_since: float
    """The last violation, or the start: the minute of growth counts from here."""
    halved_at: float | None = None
    heard: Pressure | None = None
    """The last row; None: nothing is known of a metric, so none can be missed."""
    stale: bool = False
    cause: tuple[Input, ...] = ()
    """What made the budgets what they are."""

    def left(self, module: str) -> int | None:
        """Thousandths for jobs of `module`; None: no level was certified for it."""
        budget = self.budgets.get(module) or self.budgets.get(ANY)
        return None if budget is None else budget.left


def thousandths(part: float) -> int:
    """Round a part of 1 down to thousandths, 0 below `LEAST`: 0.3 is 300, though 0.3 in binary is a hair less."""
    whole = math.floor(min(max(part, 0.0), 1.0) * WHOLE + 1e-6)
    return whole if whole >= LEAST else 0


def start(row: Protected) -> Beside:
    """The program begins to use the GPU: every budget is what was certified."""
    budgets = {module: Budget(level, level) for module, level in _levels(row).items()}
    return Beside(told=row, budgets=budgets, clean_since=row.t, cause=(row,))


def told_again(beside: Beside, row: Protected) -> Beside:
    """Levels told while the program goes on: no fresh start, and what has been cut stays cut."""
    levels = _levels(row)
    if levels == {module: budget.level for module, budget in beside.budgets.items()}:
        return replace(beside, told=row)
    cut = min((b.left for b in beside.budgets.values() if b.left < b.level), default=WHOLE)
    left = {module: budget.left for module, budget in beside.budgets.items()}
    budgets = {module: Budget(level, min(level, left.get(module, cut))) for module, level in levels.items()}
    return replace(beside, told=row, budgets=budgets, cause=(*beside.cause, row)[-2:])


def hear(beside: Beside, row: Pressure) -> Beside:
    """Take a row of pressure: at twice the target nothing is left; at the target half, 20 s after the last halving."""
    value = AT_TARGET if row.value is None else row.value
    if value < AT_TARGET:
        clean_since = row.t if beside.stale else beside.clean_since
        return replace(beside, heard=row, stale=False, clean_since=clean_since)
    heard = replace(beside, heard=row, stale=False, clean_since=row.t)
    if value >= AT_TWICE:
        nothing = {module: replace(budget, left=0) for module, budget in beside.budgets.items()}
        return _with(heard, nothing, row)
    if beside.halved_at is None or row.t - beside.halved_at >= HALVE_S - SLACK_S:
        return _halved(heard, row.t)
    return heard


def due(beside: Beside) -> tuple[float, bool] | None:
    """Give the next moment at which time alone acts, and whether a row of that very moment would still be in time."""
    if beside.heard is None:
        return None
    silent = beside.heard.t + STALE_S
    if not beside.stale:
        growth = beside.clean_since + GROW_S
        return (growth, False) if growth <= silent else (silent, True)
    if not any(budget.left for budget in beside.budgets.values()):
        return None
    # The first halving of a silence falls due with the silence itself, so never before it.
    return max(silent, (-math.inf if beside.halved_at is None else beside.halved_at) + HALVE_S), False


def pass_moment(beside: Beside, t: float) -> Beside:
    """The moment that `due` gave has come: grow, fall silent, or halve in the silence."""
    if beside.stale:
        return _halved(beside, t)
    if t < beside.clean_since + GROW_S:
        silent = replace(beside, stale=True)
        long_ago = beside.halved_at is None or t - beside.halved_at >= HALVE_S - SLACK_S
        return _halved(silent, t) if long_ago else silent
    grown = {module: budget.grown() for module, budget in beside.budgets.items()}
    assert beside.heard is not None
    return _with(replace(beside, clean_since=t), grown, beside.heard)


def _halved(beside: Beside, t: float) -> Beside:
    assert beside.heard is not None
    halves = {module: budget.cut() for module, budget in beside.budgets.items()}
    return _with(replace(beside, halved_at=t), halves, beside.heard)


def _with(beside: Beside, budgets: Mapping[str, Budget], row: Pressure) -> Beside:
    return beside if budgets == beside.budgets else replace(beside, budgets=budgets, cause=(beside.told, row))


def _levels(row: Protected) -> dict[str, int]:
    levels = {module: thousandths(level) for module, level in row.levels.items()}
    return levels if row.level is None else {ANY: thousandths(row.level)} | levels

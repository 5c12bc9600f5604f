"""Give a runner other duties after its window: one that stands a while without a nudge, then the nudge, then another.

The one after a duty of 0 is lower than the spec's, and is measured too. The last duty is 0, so that a stop finds an
idle without end. Decides nothing; see `judge.duty_changes` and `judge.duty_switch`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from oarbank_conformkit.evidence import Change
from oarbank_conformkit.judge.duty import SETTLE_S
from oarbank_conformkit.judge.duty_changes import HELD_S, LOOKED_S, UNASKED_S, WORK_S, lower_duty, next_duties
from oarbank_conformkit.judge.duty_lines import WAKE_S
from oarbank_conformkit.judge.duty_switch import SWITCH_S
from oarbank_conformkit.steps import DutyStep
from oarbank_conformkit.suites.bench import Bench
from oarbank_conformkit.suites.watch import Watch

IDLE_S = 0.3
"""How long the last duty of 0 is in force before the stop: long enough to end a unit and wait."""


def change_duties(bench: Bench, step: DutyStep, watch: Watch) -> tuple[Change, ...]:
    """Return the changes that were nudged, in order; fewer than planned when the runner ended."""
    first, *rest = next_duties(step.spec.duty)
    bench.live(f"{step.title}: duty {first:g} stands in the document, not nudged")
    change = _unasked(watch, first)
    if change is None:
        return ()
    bench.live(f"{step.title}: duty {first:g} is set")
    if not rest:
        return _last(watch, (_woken(watch, change),))
    change, lives = _held(watch, change, HELD_S)
    if not lives:
        return (change,)
    bench.live(f"{step.title}: duty {rest[0]:g} is set")
    woken = _woken(watch, _nudged(watch, rest[0], time.time()))
    if woken.woke_s is not None and lower_duty(step.spec.duty) is not None:
        woken, _ = _held(watch, woken, SWITCH_S)
    return _last(watch, (change, woken))


def _unasked(watch: Watch, duty: float) -> Change | None:
    """Write a duty, wait, nudge; None when the runner ended before the nudge."""
    written_wall, written = time.time(), time.monotonic()
    watch.scratch.change_control({"gpu_duty": duty})
    if not watch.until(written + UNASKED_S):
        return None
    watch.measure.step()
    unasked_s = watch.measure.gained_s(written + UNASKED_S - LOOKED_S)
    return replace(_nudge(watch, duty, written_wall), unasked_s=unasked_s)


def _nudged(watch: Watch, duty: float, written_wall: float) -> Change:
    """Write a duty and nudge at once."""
    watch.scratch.change_control({"gpu_duty": duty})
    return replace(_nudge(watch, duty, written_wall), unasked_s=watch.measure.gained_s(time.monotonic()))


def _nudge(watch: Watch, duty: float, written_wall: float) -> Change:
    nudging_wall = time.time()
    watch.runner.nudge()
    return Change(duty, written_wall, nudging_wall, time.time(), time.monotonic())


def _held(watch: Watch, change: Change, length_s: float) -> tuple[Change, bool]:
    """Measure a duty from a second after its nudge on, or from now; False when the runner ended."""
    opens = max(change.nudged + SETTLE_S, time.monotonic())
    if not watch.until(opens):
        return change, False
    watch.measure.start()
    lives = watch.until(opens + length_s)
    cpu, gpu, _ = watch.measure.end()
    return replace(change, cpu=cpu, gpu=gpu), lives


def _woken(watch: Watch, change: Change) -> Change:
    """Look until the runner works."""
    watch.measure.start()
    watch.until(change.nudged + WAKE_S, enough=_worked(watch, change.nudged))
    looked_s = time.monotonic() - change.nudged
    woke_s = looked_s if _worked(watch, change.nudged)() else None
    cpu, gpu, _ = watch.measure.end()
    return replace(change, cpu=cpu, gpu=gpu, woke_s=woke_s, looked_s=looked_s)


def _worked(watch: Watch, since: float) -> Callable[[], bool]:
    return lambda: max(watch.measure.gained_s(since).values(), default=0.0) >= WORK_S


def _last(watch: Watch, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """End with a duty of 0, which no check is about: the stop is to find a long idle."""
    if watch.runner.wait(0.0) is None:
        _nudged(watch, 0.0, time.time())
        watch.until(time.monotonic() + IDLE_S)
    return changes

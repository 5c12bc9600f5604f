"""The duty governor: hold the share of time that a runner keeps the GPU busy.

Wrap each stretch of GPU work in ``duty.unit()``; end the block only when the GPU is done. After a unit of ``b``
seconds at duty ``d`` the next starts no earlier than ``b/d`` after the first one's start: a deadline, so host work
overlaps it, and lateness is repaid, 20 ms at most. A stop, a pause or another duty acts in the middle of an idle.

`_Pace` says when the next unit may start, `_Sizes` how large it should be, `_Span` what a report says: all pure.
`Duty` waits, locks and writes. This file works alone, copied into a runner: it needs the standard library and
imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Duty", "Stopped", "Unit"]

CREDIT_S = 0.020  # lateness that may be repaid: enough for a late wake-up, too little for a burst anyone sees
STALL_S = 1.0  # later than this is a stall (a suspended machine): nothing of it is repaid
SLICE_S = 2.0  # longest single wait, so that no timer overflows at tiny duties
REPORT_S = 2.0  # a report's interval (the brief), ended where a cycle ends ...
REPORT_LATEST_S = 4.0  # ... and no later than this, but for a unit that runs longer
REPORT_SHORTEST_S = 0.25  # less says nothing about a share
SMALLEST = 0.01  # the first unit of its kind is this part of full size: a probe
STARVED_DUTY = 0.05  # sizes at duty 0 are those of the first step that a budget grows by


class Stopped(Exception):
    """The governor was closed while a unit waited. Also a control module's `Stopped`, where one is loaded."""


class _Pace:
    """When the next unit may start: arithmetic on moments of one clock, in seconds."""

    __slots__ = ("base", "busy", "repays", "start")

    def __init__(self) -> None:
        self.start = self.base = -math.inf  # the last unit's start; the same, less what lateness is repaid
        self.busy = 0.0  # how long it kept the GPU busy
        self.repays = False

    def due(self, duty: float | None) -> float:
        """The earliest start under `duty`, in force now: -inf at once, inf not before the duty changes."""
        if duty is None or duty >= 1.0:
            return -math.inf
        return self.base + self.busy / duty if duty > 0.0 else math.inf

    def began(self, now: float, duty: float | None) -> None:
        """A unit starts at `now`. What it is late is taken off the next idle, as far as the credit goes."""
        late = now - self.due(duty) if self.repays else 0.0
        self.base = now - min(late, CREDIT_S) if 0.0 <= late <= STALL_S else now
        self.start, self.busy, self.repays = now, 0.0, True

    def forget(self) -> None:
        """Nothing is repaid across a pause or a change of duty: count from the unit itself."""
        self.base, self.repays = self.start, False


class _Sizes:
    """How large the next unit of one kind should be, as a part of the caller's full size."""

    __slots__ = ("asked", "full_s", "ran")

    def __init__(self) -> None:
        self.full_s: deque[float] = deque(maxlen=8)  # what the last units would have taken at full size
        self.asked = self.ran = 1.0  # the factor handed out last, at which the next unit runs; the last unit's

    def ended(self, busy_s: float) -> None:
        self.ran = self.asked
        self.full_s.append(busy_s / self.asked)

    def factor(self, duty: float | None, longest_s: float) -> float:
        if duty is None or not self.full_s:
            self.asked = 1.0 if duty is None else SMALLEST
        else:
            room_s = min(max(duty, STARVED_DUTY), longest_s)  # the duty's share of one second (the brief)
            self.asked = max(SMALLEST, min(1.0, room_s / max(*self.full_s, 1e-9), 2.0 * self.ran))
        return self.asked


class _Span:
    """What was held since the last report, under one duty."""

    __slots__ = ("busy_s", "device_time", "duty", "idle_s", "longest_s", "start", "units")

    def __init__(self, start: float, duty: float | None) -> None:
        self.start, self.duty = start, duty
        self.busy_s = self.idle_s = self.longest_s = 0.0
        self.units, self.device_time = 0, False

    def ended(self, busy_s: float, device_time: bool) -> None:
        self.busy_s += busy_s
        self.units += 1
        self.device_time |= device_time
        if busy_s > self.longest_s:
            self.longest_s = busy_s

    def whole_s(self) -> float:
        """How long its cycles last when all idle is paid: cut earlier, it reads above the duty that was held."""
        return self.busy_s / self.duty if self.duty else 0.0

    def closes(self) -> float:
        """When to report while idling: after whole cycles, from 2 s on, and by 4 s."""
        return self.start + min(max(REPORT_S, self.whole_s()), REPORT_LATEST_S)

    def report(self, now: float, wall: float, device: str) -> dict[str, Any]:
        window = now - self.start
        seconds = {"window_s": window, "busy_s": self.busy_s, "idle_s": self.idle_s, "longest_unit_s": self.longest_s}
        data = {"duty": self.duty, "device": device, "busy_source": "device" if self.device_time else "wall"}
        data |= {"units": self.units} | {name: round(value, 6) for name, value in seconds.items()}
        share = round(min(self.busy_s / window, 1.0), 6)
        return {"t": round(wall, 6), "kind": "metric", "name": "gpu_duty", "value": share, "data": data}


class Unit:
    """One stretch of GPU work, as a context manager; `Duty.unit()` hands it out."""

    __slots__ = ("_duty", "_sizes")

    def __init__(self, duty: Duty) -> None:
        self._duty, self._sizes = duty, _Sizes()

    def __enter__(self) -> Unit:
        self._duty._begin()
        return self

    def __exit__(self, *exc: object) -> None:
        self._duty._end(self._sizes)

    def busy(self, seconds: float) -> None:
        """Charge `seconds` of the device's own time (a CUDA event, a Metal command buffer) in place of wall time,
        which includes the wait for others beside a busy GPU. Call it inside the block; several calls add up.
        ValueError for anything but a finite number >= 0, RuntimeError after the block.
        """
        if self._duty._owner != threading.get_ident():
            raise RuntimeError("unit.busy: must be called inside the unit's block")
        self._duty._device_s = (self._duty._device_s or 0.0) + _number("unit.busy", seconds, least=0.0)


class Duty:
    """Keep the GPU busy for at most the duty's share of the time.

    `ctl` is the runner's `Control`: its `gpu_duty` decides, its stop and pause hold at every unit. With None,
    `set()` decides. `events` is the path that gets a `gpu_duty` report every two seconds. `device` is what the
    reports name: "gpu", or "cpu" for a stand-in that computes there. `sync` is called at the end of each unit,
    inside its time: ``sync=mx.synchronize`` for work that returns before the device is done. `longest_s` keeps
    units that `scale()` sizes under so many seconds too, for a program that draws frames.

    One unit runs at a time: threads take turns in the order they asked; a unit inside a unit belongs to the outer
    one, so never leave a block across an ``await``. `idle_s` are the seconds that the governor held units back
    (pauses are not in it), `busy_s` those of all units, `units` their number. `close()` need not be reached.
    """

    def __init__(
        self, ctl: Any, events: str | os.PathLike[str] | None = None, *, device: str = "gpu",
        sync: Callable[[], object] | None = None, longest_s: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        if ctl is not None and not hasattr(ctl, "safe_point"):
            raise TypeError(f"ctl: must be a Control, or None for a duty that set() gives; found {ctl!r:.80}")
        self._ctl = ctl
        self._events = None if events is None else os.path.abspath(events)
        self._device, self._sync, self._clock = device, sync, clock  # time.monotonic has steps of 16 ms on Windows
        self._longest_s = math.inf if longest_s is None else _number("longest_s", longest_s, least=0.0)
        self._asked: float | None = None
        self._closed = self._said_unwritable = self._torn = False
        self._reset()
        _alive.add(self)

    def _reset(self) -> None:
        """Begin without debt, half a report, or anybody's turn; so does the child of a fork."""
        self.idle_s = self.busy_s = 0.0
        self.units = self._depth = 0
        self._changed = threading.Condition()
        self._turn, self._owner = threading.Lock(), 0  # held from the wait before a unit to its end, by this thread
        self._queue: deque[threading.Lock] = deque()
        self._gate = threading.Lock()  # guards the queue's way to the turn
        self._kinds: dict[str | None, Unit] = {}
        self._device_s: float | None = None
        self._pace, self._span = _Pace(), _Span(self._clock(), self.duty)

    @property
    def duty(self) -> float | None:
        """The duty in force, 0.0 to 1.0, or None when there is no limit."""
        return self._asked if self._ctl is None else self._ctl.gpu_duty

    def unit(self, label: str | None = None) -> Unit:
        """One unit, as a context manager; entering it waits, and raises the control module's `Stopped`.
        `label` keeps kinds of units apart for `scale()`: "prefill" and "decode". RuntimeError after `close()`.
        """
        if self._closed:
            raise RuntimeError("duty: closed, and an ungoverned unit would break the promise; make another Duty")
        return self._kinds.get(label) or self._kinds.setdefault(label, Unit(self))

    def scale(self, label: str | None = None) -> float:
        """How much of your full size the next unit of this kind should be: 0.01 to 1.0, and 1.0 without a duty.
        One unit then fits the duty's share of a second, and `longest_s`. Under a duty, before any unit of this kind,
        it is 0.01: a probe; from one unit to the next a size at most doubles.
        """
        kind = self._kinds.get(label) or self._kinds.setdefault(label, Unit(self))
        return kind._sizes.factor(self.duty, self._longest_s)

    def set(self, duty: float | None) -> None:
        """Put `duty` in force from any thread, at once; None lifts the limit, a number is clamped into 0..1.
        ValueError for anything else. RuntimeError with a control document, which alone decides then.
        """
        if self._ctl is not None:
            raise RuntimeError("duty: the control document decides here; set() is for Duty(None)")
        with self._changed:
            self._asked = None if duty is None else min(max(_number("duty", duty), 0.0), 1.0) + 0.0
            self._changed.notify_all()

    def close(self) -> None:
        """Write the last report and end every wait with `Stopped`. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        with self._changed:
            self._changed.notify_all()
        if hasattr(self._ctl, "wake"):
            self._ctl.wake()
        if self._turn.acquire(False):  # else the thread whose turn it is writes the report
            self._pass_turn()

    def __enter__(self) -> Duty:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _begin(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
            return
        if self._queue or not self._turn.acquire(False):
            self._await_turn()
        try:
            self._owner = me
            self._hold()
        except BaseException:
            self._pass_turn()
            raise

    def _hold(self) -> None:
        """Wait until the next unit may start; the pace then knows that it did."""
        self._safe_point()
        duty = self._noticed(now := self._clock())
        while now < (due := self._pace.due(duty)):
            if now >= (closes := self._span.closes()):
                self._report(now)
                continue
            self._wait(min(due, closes, now + SLICE_S) - now)
            duty = self._noticed(now := self._clock())
        if now - self._span.start >= REPORT_S:  # here a cycle is whole
            self._report(now)
        self._pace.began(now, duty)
        self._pace.start = self._clock()  # the first steps after a sleep are slow, and not the unit's

    def _end(self, sizes: _Sizes) -> None:
        if self._depth or not self._owner:  # nobody's turn: a fork's child leaves the block of its parent
            self._depth = max(self._depth - 1, 0)
            return
        try:
            try:
                if self._sync is not None:
                    self._sync()
            finally:
                now = self._clock()
                device_s, self._device_s = self._device_s, None
                self._pace.busy = busy_s = now - self._pace.start if device_s is None else device_s
                self.busy_s += busy_s
                self.units += 1
                self._span.ended(busy_s, device_s is not None)
                sizes.ended(busy_s)
                if now - self._span.start >= REPORT_LATEST_S:
                    self._report(now)
                self._noticed(now)
        finally:  # whatever failed or interrupted: the next unit must wait again
            self._pass_turn()

    def _safe_point(self) -> None:
        """The control document's word: raises its `Stopped`, holds its pause."""
        if self._closed:
            raise _stopped()
        if self._ctl is not None:
            paused_s = self._ctl.paused_s
            self._ctl.safe_point()
            if self._ctl.paused_s != paused_s:
                self._pace.forget()

    def _wait(self, seconds: float) -> None:
        """Idle, at most `seconds`; anything that changes ends it early. A pause is held after it, and is no idle."""
        ctl, before = self._ctl, self._clock()
        if ctl is None:
            with self._changed:
                if self._asked == self._span.duty and not self._closed:
                    self._changed.wait(seconds)
        elif not hasattr(ctl, "wait"):
            time.sleep(min(seconds, 0.05))  # an older control.py beside us: the one poll
        else:
            seq = ctl.seq
            if ctl.gpu_duty == self._span.duty and not (self._closed or ctl.stop or ctl.pause):
                ctl.wait(seconds, newer_than=seq)
        idle_s = max(self._clock() - before, 0.0)
        self.idle_s += idle_s
        self._span.idle_s += idle_s
        self._safe_point()

    def _noticed(self, now: float) -> float | None:
        """The duty in force. Where it is another one, the report ends here, for none may span two."""
        duty = self.duty
        if duty != self._span.duty:
            self._report(now)
            self._span.duty = duty
            self._pace.forget()
            if fault := getattr(self._ctl, "gpu_duty_fault", None):
                self._write({"t": round(time.time(), 6), "kind": "log", "level": "warn", "msg": fault})
        return duty

    def _await_turn(self) -> None:
        """Stand in line: threads come in the order in which they asked."""
        ticket = threading.Lock()
        ticket.acquire()
        try:
            self._queue.append(ticket)
            self._offer_turn()
            ticket.acquire()
        except BaseException:  # Ctrl-C: leave the line, or hand on the turn that came in this very moment
            with self._gate:
                mine = ticket not in self._queue or self._queue.remove(ticket)
            if mine:
                self._pass_turn()
            raise

    def _pass_turn(self) -> None:
        if self._closed:
            self._report(self._clock())
        self._owner = 0
        self._turn.release()
        if self._queue:
            self._offer_turn()

    def _offer_turn(self) -> None:
        with self._gate:
            if self._queue and self._turn.acquire(False):
                self._queue.popleft().release()

    def _report(self, now: float) -> None:
        """End the interval at `now`, write what it held, begin the next one under the same duty."""
        span, self._span = self._span, _Span(now, self._span.duty)
        if now - span.start >= max(min(span.whole_s(), REPORT_S), REPORT_SHORTEST_S):
            self._write(span.report(now, time.time(), self._device))

    def _write(self, event: dict[str, Any]) -> None:
        """Append one line by one write; a file that takes none is said once and never ends the work."""
        if self._events is None:
            return
        line = (b"\n" if self._torn else b"") + json.dumps(event, allow_nan=False).encode() + b"\n"
        try:
            with open(self._events, "ab", buffering=0) as file:
                self._torn = (file.write(line) or 0) < len(line)
            fault = "no room for a whole line" if self._torn else ""
        except OSError as refused:
            fault = str(refused)
        if fault and not self._said_unwritable:
            self._said_unwritable = True
            with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be gone, or never was
                sys.stderr.write(f"{self._events}: must take gpu_duty reports; found: {fault}. The work goes on.\n")


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    """`value` as a finite float; a boolean or a text is none."""
    if not isinstance(value, (bool, str, bytes)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if math.isfinite(number := float(value)) and number >= least:
                return number
    raise ValueError(f"{name}: must be a finite number{' >= 0' if least == 0 else ''}; found {str(value)[:80]!r}")


def _stopped() -> Stopped:
    """Our `Stopped`, which is also that of the control module loaded beside this file, for callers catch that one."""
    theirs = getattr(sys.modules.get(f"{__package__}.control" if __package__ else "control"), "Stopped", None)
    kind = type("Stopped", (Stopped, theirs), {}) if isinstance(theirs, type) else Stopped
    return kind("the governor was closed while a unit waited")


_alive: weakref.WeakSet[Duty] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [duty._reset() for duty in list(_alive)])

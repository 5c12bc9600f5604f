"""How much a protected program slowed, from a counter of its own that only grows: harm over its owner's target.

    harm = 1 - rate / baseline          value = harm / target

The rate is the counter's over the last 20 s, but never from before our work began or ended. The baseline is the rate
over 20 s in which nothing of ours ran, learnt anew each time that happens; it is learnt at no other time. A counter
that cannot be read or stands still says nothing good: its value is None. One that goes back belongs to a program that
was started again, and everything is learnt anew.

Rates are taken from one change of the counter to another, so that a slow counter is not read as if it stood still
between two steps. Pure: moments (seconds on the agent's clock) and counts come in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WINDOW_S = 20.0
"""What a rate is taken over: the protect window, after which the law halves again at the earliest."""

SETTLE_S = 2.0
"""Our work counts as running for so long after it was held, or has ended: a unit of it may still run."""

LEAST_S = 2.0
"""A rate needs so much time since our work began or ended: one sample."""

MISSING_S = 4.0
"""A source that could not be read for two samples is missing."""

STEPS_STILL = 4.0
"""A slow counter stands still when so many of its steps are overdue."""


@dataclass(frozen=True, slots=True)
class Row:
    """What there is to tell: harm over target, None for a stale metric."""

    value: float | None
    why: str | None = None
    """Why it is stale."""


@dataclass(slots=True)
class Pressure:
    """One program's; `target` is the part of its speed that it may lose, above 0."""

    target: float
    baseline: float | None = None
    """Counts a second while nothing of ours runs; None: not learnt yet."""
    rate: float | None = None
    """Counts a second now; None: nothing is known."""
    working: bool = False
    """Something of ours runs."""
    _changes: list[tuple[float, float]] = field(default_factory=list)  # (moment, count), since `_since` and one before
    _since: float | None = None  # our work has begun or ended then; None: nothing was heard
    _ran_at: float = 0.0
    _read_at: float | None = None
    _fault: str | None = None

    def work(self, t: float, runs: bool) -> None:
        """Say whether anything of ours runs on the GPU now; a gap between two jobs is no end of it."""
        if runs:
            self._ran_at = t
        elif self.working and t - self._ran_at < SETTLE_S:
            return
        if runs != self.working or self._since is None:
            self.working = runs
            self._begin(t)

    def hear(self, t: float, count: float | None, fault: str | None = None) -> None:
        """Take a reading of the counter; None with a reason: it could not be read."""
        if self._since is None:
            self._begin(t)
        if count is None:
            self._fault = fault
            self._read_at = t if self._read_at is None else self._read_at
            return
        self._read_at, self._fault = t, None
        if not self._changes:
            self._changes.append((t, count))
            return
        last = self._changes[-1][1]
        if count < last:
            self.restart(t)
            self._read_at = t
            self._changes.append((t, count))
        elif count > last:
            self._changes.append((t, count))
            self._forget(t)
        self._learn(t)

    def restart(self, t: float) -> None:
        """The program is another one than before: forget what was learnt."""
        self.baseline = self.rate = self._read_at = None
        self._changes.clear()
        self._begin(t)

    def row(self, t: float) -> Row | None:
        """Say what the program's pressure is at `t`; None: too early to say."""
        if self._since is None or self._read_at is None:
            return None
        self.rate = self._rate(t, WINDOW_S)
        if t - self._read_at >= MISSING_S:
            return Row(None, self._fault or "it was not read")
        if not self._changes:
            return None
        if self._still(t):
            return Row(None, f"it stands still since {t - self._changes[-1][0]:.0f} s")
        if self.baseline is None or self.rate is None:
            return None
        return Row(max(0.0, 1.0 - self.rate / self.baseline) / self.target)

    # ---- what is kept ---------------------------------------------------------------------------------------

    def _begin(self, t: float) -> None:
        self._since = t
        del self._changes[:-1]  # the last change is where the first rate of the new time starts

    def _forget(self, t: float) -> None:
        """Keep one change from before the longest window."""
        keep = 0
        while keep + 1 < len(self._changes) and self._changes[keep + 1][0] <= t - WINDOW_S:
            keep += 1
        del self._changes[:keep]

    def _learn(self, t: float) -> None:
        """After 20 s without our work the rate over them is the baseline."""
        if self.working or self._since is None:
            return
        if t - self._since < WINDOW_S or self._still(t):
            return
        inside = [change for change in self._changes if change[0] >= self._since]
        if len(inside) < 2:
            return
        (first_t, first), (last_t, last) = inside[0], inside[-1]
        if last_t > first_t:
            self.baseline = (last - first) / (last_t - first_t)

    def _rate(self, t: float, window_s: float) -> float | None:
        if self._since is None or t - self._since < LEAST_S or not self._changes:
            return None
        start = max(self._since, t - window_s)
        before = [change for change in self._changes if change[0] <= start]
        first_t, first = before[-1] if before else self._changes[0]
        last_t, last = self._changes[-1]
        if t <= first_t:
            return None
        most = (last - first + self._step()) / (t - first_t)  # as if the next step came this very moment
        return most if last_t <= first_t else min((last - first) / (last_t - first_t), most)

    def _step(self) -> float:
        """The largest step of the counter between two readings."""
        steps = [later[1] - earlier[1] for earlier, later in zip(self._changes, self._changes[1:], strict=False)]
        return max(steps, default=1.0)

    def _still(self, t: float) -> bool:
        usual_s = 0.0 if not self.baseline else STEPS_STILL * self._step() / self.baseline
        return t - self._changes[-1][0] >= max(WINDOW_S, usual_s)

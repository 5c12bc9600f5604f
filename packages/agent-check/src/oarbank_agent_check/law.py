"""The law as an agent keeps it: what it decides is on the disk before it is done.

Every input goes through `core.step` here. The new state is saved first, then the journal gets what was heard and what
was ordered, then the orders go back to whoever carries them out. It decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oarbank_agent_check import core
from oarbank_agent_check.actions import Action
from oarbank_agent_check.agent_clock import AgentClock
from oarbank_agent_check.agent_state import Remembered, StateFolder
from oarbank_agent_check.inputs import Input, JobEnd, Protected, Tick
from oarbank_agent_check.journal import line_of
from oarbank_agent_check.state import State

Journal = Callable[[Sequence[str]], None]
"""Writes lines, at once; what it raises ends the job."""


class Law:
    """One state, followed from what an earlier run remembered."""

    def __init__(self, folder: StateFolder, journal: Journal, factor: float = 1.0) -> None:
        """Read the state. What an agent left running when it was killed is told to have ended."""
        self._folder = folder
        self._journal = journal
        remembered = folder.load()
        self.clock = AgentClock(factor, None if remembered is None else remembered.mark)
        self.state = State() if remembered is None else remembered.law
        left = list(self.state.jobs)
        programs = [beside.told.program for beside in self.state.programs.values()]
        if left or programs:
            now = self.clock.now()
            gone = [JobEnd(now, one) for one in left] + [Protected(now, False, program=name) for name in programs]
            self.hear(*gone)

    def hear(self, *inputs: Input) -> tuple[Action, ...]:
        """Tell the law, in order, and return its orders; an input's `t` is a moment of `clock`."""
        now = self.clock.now()
        self.state, orders = core.step(self.state, inputs, now)
        self._folder.save(Remembered(self.state, self.clock.mark()))
        if lines := [line_of(one) for one in (*inputs, *orders)]:
            self._journal(lines)
        return orders

    def pass_time(self) -> tuple[Action, ...]:
        """Let the law act where time alone is due to."""
        due = core.next_due(self.state)
        now = self.clock.now()
        return self.hear(Tick(now)) if due is not None and due <= now else ()

    def strikes(self, job: str) -> int:
        """Say how many of a job's strikes still count."""
        known = self.state.jobs.get(job)
        return 0 if known is None else len(known.watch.strikes)

    def banned_until(self, module: str) -> float | None:
        """Say until when, on `clock`, a module is banned; None: it is not."""
        ban = self.state.bans.get(module)
        return None if ban is None else ban.until

"""An agent on paper: the law, a GPU in virtual time, and an owner's target for a program's frames."""

from __future__ import annotations

from oarbank_agent_check import check, core
from oarbank_agent_check.actions import Admit, Pause, Release, Resume, SetDuty, Stop
from oarbank_agent_check.inputs import Input, Job, Policy, Pressure, Protected, SampleSeen
from tests.agent_check.paper_gpu import PaperGpu, Worker

METRIC_S = 1.0
"""Seconds between two rows of pressure; each is over the last two of them."""
NOISE = 0.1
"""Standard deviation of a row, as a part of it."""


class Agent:
    """The law with a GPU on paper under it: it tells what it sees and does what is ordered.

    `target` is how much longer frames may take on average, as a part; `unreadable` how often a row or a sample is null.
    """

    def __init__(self, gpu: PaperGpu, *, target: float, unreadable: float = 0.0) -> None:
        self.gpu, self.state, self.target, self.unreadable = gpu, core.State(), target, unreadable
        self.pauses = 0
        self.zero_at: float | None = None
        jobs = [Job(0.0, f"j{i}", "m", True, "shared", True) for i, _ in enumerate(gpu.workers)]
        self.hear(Policy(0.0, "certified"), *jobs)

    def hear(self, *told: Input) -> None:
        self.state, orders = core.step(self.state, told, self.gpu.now)
        for order in orders:
            if isinstance(order, SetDuty):
                self._worker(order.job).set(order.duty)
                if order.duty == 0 and self.zero_at is None:
                    self.zero_at = order.t
            elif isinstance(order, (Pause, Stop, Release)):
                self._worker(order.job).paused = True
                self.pauses += 1
            elif isinstance(order, (Resume, Admit)):
                self._worker(order.job).paused = False

    def _worker(self, job: str) -> Worker:
        return self.gpu.workers[int(job[1:])]

    def starts(self, level: float) -> None:
        self.gpu.frame = self.gpu.now
        self.hear(Protected(self.gpu.now, True, level))

    def ends(self) -> None:
        self.gpu.frame = float("inf")
        self.hear(Protected(self.gpu.now, False))

    def go_on(self, until: float) -> list[float]:
        """Let time pass, a row of pressure a second, samples every two; give the pressures."""
        pressures, count = [], 0
        while self.gpu.now + METRIC_S <= until + 1e-9:
            self.gpu.run(self.gpu.now + METRIC_S)
            count += 1
            now = self.gpu.now
            told: list[Input] = []
            if count % 2 == 0:
                told += [
                    SampleSeen(now, f"j{i}", None if self._gap() else worker.held(now - check.SAMPLE_S, now))
                    for i, worker in enumerate(self.gpu.workers)
                ]
            harm = self.gpu.slowed(now - 2 * METRIC_S) / self.target
            pressures.append(harm)
            told.append(Pressure(now, None if self._gap() else harm * self.gpu.rng.gauss(1, NOISE)))
            self.hear(*told)
        return pressures

    def _gap(self) -> bool:
        return self.gpu.rng.random() < self.unreadable

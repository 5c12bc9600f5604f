"""A batch with everything around it scripted, on virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import Job, Prompt
from tests.llmserve.fakes import FakeControl, FakeDuty, ListSink, ScriptedEngine, VirtualClock

HELLO = [b"Hel", b"lo", b" you"]


class Bench:
    """One job of `prompts` (all of the script's where none are named) on a scripted engine."""

    def __init__(
        self,
        script: dict[str, Sequence[bytes | Exception]],
        *,
        prompts: Sequence[str | Prompt] | None = None,
        duty: float | None = None,
        scale: float = 1.0,
        max_tokens: int = 50,
        stop: tuple[str, ...] = (),
        longest_s: float | None = None,
        tick_s: float = 1e-6,
        ctl: FakeControl | None = None,
        **engine: Any,
    ) -> None:
        self.clock = VirtualClock(tick_s)
        self.duty = FakeDuty(self.clock, duty, scale)
        self.ctl = ctl or FakeControl()
        self.engine = ScriptedEngine(script, self.duty, self.clock, **engine)
        self.sink = ListSink()
        self.told: list[tuple[int, int]] = []
        asked = tuple(
            one if isinstance(one, Prompt) else Prompt(one, max_tokens=max_tokens, stop=stop)
            for one in prompts or script
        )
        self.batch = Batch(
            Job("batch", asked, "stub", longest_s=longest_s),
            self.engine,
            self.duty,
            self.ctl,
            clock=self.clock,
            progress=lambda *done: self.told.append(done),
        )

    def run(self) -> ListSink:
        self.batch.prepare()
        self.batch.run(self.sink)
        return self.sink

    def texts(self) -> list[str]:
        """In the order of the prompts."""
        return [completion.text for completion in sorted(self.sink, key=lambda completion: completion.index)]

"""Device work as units under the duty: the one place where the loop, the governor and an engine meet.

Every call into an engine that works on its device runs in `Units.run`, behind a safe point, and is measured here. A
call that breathes (a step cut into slices, a load between two of its steps) ends its unit and begins the next one from
inside itself; a stop that comes there is kept until the engine has returned, because it may be called by a library
that no exception crosses. What goes wrong in an engine is the prompt's fault, unless it is a lack of memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from oarbank_llmserve.engines import Engine, EngineError, OutOfMemory, PromptFault, Slicing, StepGivenUp, end_of

# A load breathes when it has worked so long: a burst that a program beside us hardly feels, and few enough breaths.
LOAD_BURST_S = 0.05


class Governor(Protocol):
    """What the loop needs of `oarbank_sdk.duty.Duty`."""

    @property
    def duty(self) -> float | None: ...
    def unit(self, label: str | None = None) -> AbstractContextManager[Any]: ...
    def scale(self, label: str | None = None) -> float: ...


class Steering(Protocol):
    """What the loop needs of `oarbank_sdk.control.Control`."""

    @property
    def threads(self) -> int | None: ...
    def safe_point(self) -> None: ...


@dataclass(slots=True)
class Spell:
    """What the units came to."""

    units: int = 0
    busy_s: float = 0.0  # inside units
    longest_unit_s: float = 0.0


class Units:
    """One thread's units. `longest_s` asks the engine for slices no longer than that."""

    def __init__(
        self,
        duty: Governor,
        ctl: Steering,
        *,
        longest_s: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.slicing = None if longest_s is None else Slicing(longest_s, self.breathe)
        self.spell = Spell()  # may be replaced: of a load nobody asks how fast it was
        self._duty = duty
        self._ctl = ctl
        self._clock = clock
        self._threads: int | None = None
        self._label = ""
        self._open: AbstractContextManager[Any] | None = None
        self._began_s = 0.0
        self._ended: BaseException | None = None  # what breathing raised: a stop, Ctrl-C

    def run(self, label: str, call: Callable[..., Any], *args: Any, engine: Engine | None = None, **named: Any) -> Any:
        """The call's answer. Raises the control module's `Stopped`, `PromptFault`, `OutOfMemory`.

        `engine` gets the threads that the control document allows: inside the unit, so that a change in the idle
        before it holds for this very unit.
        """
        self._ctl.safe_point()
        self._ended = None
        self._begin(label)
        try:
            if engine is not None and self._ctl.threads != self._threads:
                self._threads = self._ctl.threads
                engine.set_threads(self._threads)
            answer = fenced(call, *args, **named)
        except StepGivenUp:
            if self._ended is None:
                raise PromptFault("the engine gave a step up unasked") from None
            answer = None
        except EngineError:
            if self._ended is None:
                raise
            answer = None
        finally:
            self._end()
        if self._ended is not None:
            raise self._ended
        return answer

    def breathe(self) -> bool:
        """For an engine: see `oarbank_llmserve.engines.Breath`."""
        if self._ended is None:
            try:
                self._end()
                self._begin(self._label)
            except BaseException as ended:  # a stop or Ctrl-C must not cross the library that called the engine back
                self._ended = ended
        return self._ended is None

    def going(self) -> bool:
        """For `engines.Options`: a load runs on, after a breath where it has worked for long enough."""
        if self._open is None:
            return self._ended is None
        burst_s = LOAD_BURST_S if self.slicing is None else min(LOAD_BURST_S, self.slicing.longest_s)
        return self._clock() - self._began_s < burst_s or self.breathe()

    def _begin(self, label: str) -> None:
        self._label = label
        unit = self._duty.unit(label)
        unit.__enter__()
        self._open = unit
        self._began_s = self._clock()

    def _end(self) -> None:
        unit, self._open = self._open, None
        if unit is None:  # a breath ended it, and the next one never began
            return
        unit_s = self._clock() - self._began_s
        spell = self.spell
        spell.units += 1
        spell.busy_s += unit_s
        spell.longest_unit_s = max(spell.longest_unit_s, unit_s)
        unit.__exit__(None, None, None)


def fenced(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The engine's answer; whatever else it raises becomes a `PromptFault`."""
    try:
        return call(*args, **named)
    except (EngineError, StepGivenUp):
        raise
    except MemoryError:
        raise OutOfMemory("out of memory") from None
    except Exception as fault:  # the one fence of this program: a batch outlives its prompts
        raise PromptFault(f"{type(fault).__name__}: {end_of(fault)}") from fault

"""The steps that a plan is made of: what a suite is asked to run, and which rules come out of it.

Pure values. `wave` says what may run side by side: steps of one wave, one after another by number; None: it measures
and runs alone. `primary` is the rule that says that a step was not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from oarbank_agent_check.jobs.coordinator import Coordinator
from oarbank_agent_check.jobs.specs import Task
from oarbank_conformkit.checks import Suite
from oarbank_conformkit.fixtures import DutySpec, RunnerSpec
from oarbank_conformkit.goldens import Golden


@dataclass(frozen=True, slots=True)
class DoctorStep:
    """Ask the runner's doctor."""

    suite: ClassVar[Suite] = "runner"
    primary: ClassVar[str] = "doctor.exit"
    rules: ClassVar[tuple[str, ...]] = ("doctor.",)
    wave: ClassVar[int | None] = 0
    title: ClassVar[str] = "doctor"


@dataclass(frozen=True, slots=True)
class ProtocolStep:
    """Speak the module protocol with the coordinator, in two processes."""

    coordinator: Coordinator
    goldens: tuple[Golden, ...]
    platforms: tuple[str, ...]
    suite: ClassVar[Suite] = "protocol"
    primary: ClassVar[str] = "protocol.starts"
    rules: ClassVar[tuple[str, ...]] = ("protocol.",)
    wave: ClassVar[int | None] = 0
    title: ClassVar[str] = "coordinator"


@dataclass(frozen=True, slots=True)
class OfGolden:
    """What every step of a golden has."""

    task: Task
    golden: Golden
    suite: ClassVar[Suite] = "runner"

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"golden {self.golden.name}"


@dataclass(frozen=True, slots=True)
class GoldenStep(OfGolden):
    """Run a golden; what follows compares with its result."""

    primary: ClassVar[str] = "golden.exit"
    rules: ClassVar[tuple[str, ...]] = (
        "golden.exit",
        "golden.result",
        "golden.whole",
        "golden.payload",
        "golden.digest",
    )
    wave: ClassVar[int | None] = 0


@dataclass(frozen=True, slots=True)
class RepeatStep(OfGolden):
    """Run a golden again where everything around it differs; `exact`: its digest must not."""

    exact: bool
    primary: ClassVar[str] = "golden.repeat"
    rules: ClassVar[tuple[str, ...]] = ("golden.repeat", "nudge.", "writes.", "secrets.")
    wave: ClassVar[int | None] = 1


@dataclass(frozen=True, slots=True)
class RetryStep(OfGolden):
    """Kill a golden in the middle and run it again."""

    primary: ClassVar[str] = "retry.result"
    rules: ClassVar[tuple[str, ...]] = ("retry.",)
    wave: ClassVar[int | None] = 1


@dataclass(frozen=True, slots=True)
class StopStep(OfGolden):
    """Stop a golden."""

    primary: ClassVar[str] = "stop.acknowledged"
    rules: ClassVar[tuple[str, ...]] = ("stop.acknowledged", "stop.exit", "stop.result_true")
    wave: ClassVar[int | None] = None


@dataclass(frozen=True, slots=True)
class TerminateStep(OfGolden):
    """Stop a golden with SIGTERM right behind the stop; no time is judged, so it runs beside others."""

    primary: ClassVar[str] = "stop.sigterm"
    rules: ClassVar[tuple[str, ...]] = ("stop.sigterm",)
    wave: ClassVar[int | None] = 1


@dataclass(frozen=True, slots=True)
class PauseStep(OfGolden):
    """Pause a golden and resume it; `exact`: its digest must be that of the first run."""

    exact: bool
    primary: ClassVar[str] = "pause.held"
    rules: ClassVar[tuple[str, ...]] = ("pause.",)
    wave: ClassVar[int | None] = None


@dataclass(frozen=True, slots=True)
class ThrottleStep:
    """Give a running task one thread, and take the limit away again."""

    task: Task
    suite: ClassVar[Suite] = "runner"
    primary: ClassVar[str] = "throttle.threads"
    rules: ClassVar[tuple[str, ...]] = ("throttle.",)
    wave: ClassVar[int | None] = None

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"threads of {self.task.name}"


@dataclass(frozen=True, slots=True)
class SpecStep:
    """Run a runner spec's task."""

    task: Task
    spec: RunnerSpec
    suite: ClassVar[Suite] = "runner"
    primary: ClassVar[str] = "spec.exit"
    rules: ClassVar[tuple[str, ...]] = ("spec.",)
    wave: ClassVar[int | None] = 1

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"runner spec {self.spec.name}"


@dataclass(frozen=True, slots=True)
class DutyStep:
    """Run a duty spec's task and measure."""

    task: Task
    spec: DutySpec
    suite: ClassVar[Suite] = "runner"
    primary: ClassVar[str] = "duty.runs"
    rules: ClassVar[tuple[str, ...]] = ("duty.",)
    wave: ClassVar[int | None] = None

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"duty spec {self.spec.name}"


Step = (
    DoctorStep
    | ProtocolStep
    | GoldenStep
    | RepeatStep
    | RetryStep
    | TerminateStep
    | StopStep
    | PauseStep
    | ThrottleStep
    | SpecStep
    | DutyStep
)


def wanted(steps: tuple[Step, ...], rules: frozenset[str]) -> tuple[Step, ...]:
    """Return the steps that a rule comes out of, and the golden's first run where another compares with it."""
    direct = [any(rule.startswith(step.rules) for rule in rules) for step in steps]
    compares = any(take and isinstance(step, OfGolden) for step, take in zip(steps, direct, strict=True))
    kept = zip(steps, direct, strict=True)
    return tuple(step for step, take in kept if take or (compares and isinstance(step, GoldenStep)))

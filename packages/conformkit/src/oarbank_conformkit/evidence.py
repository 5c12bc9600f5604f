"""What a suite saw, before anybody judges it: plain values that cross from the world to the pure side.

Moments are monotonic seconds unless a name says wall; everything that could not be seen is None or carries its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from oarbank_agent_check.sources.ticks import Tick
from oarbank_sdk.events import DutyReport


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One run of the runner, from start to end."""

    refused: str | None = None  # the system's reason why the program could not be started
    exit: int | None = None  # exit status, negative for a signal; None when it was still running at the limit
    took_s: float = 0.0
    limit_s: float = 0.0
    result: bytes | None = None  # result.json
    failure: bytes | None = None  # failure.json
    phase: bool = False  # whether it wrote one
    stdout: bytes = b""
    stderr: str = ""
    missing_files: tuple[str, ...] = ()  # artifact files that result.json names and that are not there
    phase_s: float | None = None  # from the start to the first phase; None: none, or nobody looked
    torn: str | None = None  # what was wrong with a result.json that was seen before the end of the run


@dataclass(frozen=True, slots=True)
class RepeatSeen:
    """A golden's second run, in a place of its own that nobody else writes to."""

    run: RunSeen
    differs: tuple[str, ...] = ()  # what was other than at the first run, in words
    nudges: int = 0  # without any change of the document
    strays: tuple[str, ...] = ()  # what was written outside, in words
    watched: tuple[str, ...] = ()  # where writes outside were looked for
    unwatched: tuple[str, ...] = ()  # where they were not, each with the reason
    leaks: tuple[str, ...] = ()  # where a secret was found; see `secrets`
    secrets: tuple[str, ...] = ()  # names of those that the runner was given


@dataclass(frozen=True, slots=True)
class RetrySeen:
    """A golden that was killed in the middle and run again beside the same data directory."""

    refused: str | None = None
    killed_s: float | None = None  # from the start; None: it ended before it could be killed
    run: RunSeen | None = None  # the second attempt


@dataclass(frozen=True, slots=True)
class PauseSeen:
    """What happened after a pause was written and nudged; seconds count from the nudge."""

    limit_s: float  # it must be held by then
    window_s: float = 0.0  # how long it was watched once it was held
    refused: str | None = None
    lasted_s: float | None = None  # it ended before a pause could be written: after so long
    ended_s: float | None = None  # it ended while it should have been held
    quiet_s: float | None = None  # from then on it did no work; None: it worked on until the limit
    busy: float = 0.0  # share of one processor that it used in the last step
    watched_s: float = 0.0  # for how long it was seen to work on
    woke_s: float | None = None  # it worked again before the pause was cleared
    cpu_s: float | None = None  # processor time in the window; None: not readable
    gpu: float | None = None  # share of the GPU in the window; None: not readable
    moved: tuple[str, ...] = ()  # what changed in the workdir in the window
    waited_s: float = 0.0  # how long a busy machine kept it from a processor until it was held
    wanted_s: float = 0.0  # how long it waited for a processor in the window, which who rests does not
    run: RunSeen | None = None  # how it ended once it was resumed


@dataclass(frozen=True, slots=True)
class ThrottleSeen:
    """How many processors a runner worked on or waited for: before, under `threads` 1, and after that was lifted."""

    limit_s: float
    refused: str | None = None
    ended_s: float | None = None  # it ended before all was measured: after so long
    unread: bool = False  # its processor time cannot be read
    waits_count: bool = True  # False: this system does not tell waits, so a busy machine hides what it wants
    before: float | None = None
    before_s: float = 0.0  # how long that was watched, shorter where it ended
    limited: float | None = None
    lifted: float | None = None


StopOutcome = Literal["no_phase", "finished_first", "stopped", "ignored", "timeout"]
"""no_phase and finished_first: there was nothing to stop. stopped: it acknowledged and ended within the grace (or
late, as the seconds say). ignored: no acknowledgement until the end. timeout: acknowledged, and still there at the end
of the grace.
"""


@dataclass(frozen=True, slots=True)
class StopSeen:
    """What happened after a stop was written and nudged; seconds count from the nudge."""

    outcome: StopOutcome
    grace_s: float
    ack: Literal["failure", "result"] | None = None
    ack_s: float | None = None  # when the acknowledgement was first seen
    ack_fault: str | None = None  # what is wrong with its failure.json
    absent_s: float = 0.0  # the last look that found no acknowledgement
    exit_s: float | None = None  # None: killed
    alive_s: float = 0.0  # the last look that found it running
    code: int | None = None
    disturbed_ack_s: float = (
        0.0  # seconds, up to the acknowledgement, that a busy machine took from the runner or the kit
    )
    disturbed_s: float = 0.0  # the same up to the end
    lasted_s: float = 0.0  # for no_phase and finished_first: how long the run took
    stderr: str = ""
    result: bytes | None = None  # the result.json that acknowledged it, as it stood at the end
    missing_files: tuple[str, ...] = ()  # as in RunSeen
    nudged: float | None = None  # moment of the nudge; None: there was none


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a runner's most delayed thread waited for a processor, in the step that ended at `t`."""

    t: float
    dt_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class CpuSeen:
    """The kit's own measure over one window; `unknown` says why it is none."""

    start: float
    end: float
    ticks: tuple[Tick, ...] = ()
    total_s: float | None = None  # processor time of all its threads together
    waits: tuple[Wait, ...] | None = None  # None: this system does not say
    unknown: str | None = None
    source: str = "cpu-threads"
    clock: str | None = None
    follows_orphans: bool = True


@dataclass(frozen=True, slots=True)
class GpuTick:
    """How long the runner's processes kept the GPU busy in the `dt_s` that ended at `t`; None: it could not be read.

    `gain_s` may be more than `dt_s`: engines add up, and some drivers book a buffer when it ends. `low_s` and `high_s`
    bound it where the source's resolution is coarse.
    """

    t: float
    dt_s: float
    gain_s: float | None
    low_s: float | None = None
    high_s: float | None = None


@dataclass(frozen=True, slots=True)
class GpuSeen:
    """The kit's own measure of GPU time over one window, and ticks from before it."""

    start: float
    end: float
    ticks: tuple[GpuTick, ...] = ()
    unknown: str | None = None  # why some ticks could not be read
    source: str = "gpu"
    clock: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Another duty, written while the runner worked and nudged a second later.

    `cpu` and `gpu` are the kit's measure of the time in which it must be held, else of the time in which somebody
    looked whether the runner woke; their ticks reach back to before the first duty.
    """

    duty: float
    written_wall: float  # Unix seconds just before it was written
    nudging_wall: float  # just before the nudge
    nudged_wall: float  # and just after it
    nudged: float  # the same moment
    unasked_s: dict[str, float] = field(default_factory=dict)  # by device: what ran before the nudge, last 0.8 s
    cpu: CpuSeen | None = None
    gpu: GpuSeen | None = None
    woke_s: float | None = None  # from the nudge until work was seen; None: none was seen, or nobody looked
    looked_s: float = 0.0  # for how long somebody looked


@dataclass(frozen=True, slots=True)
class DutySeen:
    """One duty spec's run."""

    refused: str | None = None
    phase_s: float | None = None  # from the start to the first phase; None: there was none
    ended_s: float | None = None  # from the nudge to an end that came before the window closed
    code: int | None = None  # its exit status, where it ended by itself
    limit_s: float = 0.0  # how long the kit would have waited for a phase
    lasted_s: float = 0.0
    stderr: str = ""
    failure: bytes | None = None
    written_wall: float = 0.0  # Unix seconds just before the duty was written
    nudged_wall: float = 0.0  # and just after the nudge
    nudged: float | None = None  # the same moment; None: there was no nudge
    clock_step_s: float = 0.0  # how far the wall clock moved against the monotonic one since then
    reports: tuple[DutyReport, ...] = ()  # in order, from lines written after the nudge
    absent_wall: tuple[float, ...] = ()  # for each report the last look that did not find it; Unix seconds
    looked_wall: float = 0.0  # the last look for reports
    unusable: tuple[str, ...] = ()  # reasons of gpu_duty events that are no report
    cpu: CpuSeen | None = None
    gpu: GpuSeen | None = None  # None: no GPU source reads here ...
    gpu_unknown: str | None = None  # ... and why
    changes: tuple[Change, ...] = ()  # after the window, in order
    left_s: float | None = None  # from the window's close to an end that came before the stop
    stop: StopSeen | None = None
    notes: tuple[str, ...] = field(default=())

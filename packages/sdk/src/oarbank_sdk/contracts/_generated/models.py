# Generated from schemas/ by `hatch run gen:update`; do not edit.
# pyrefly: ignore-errors

from __future__ import annotations

from typing import Annotated, Any, Literal

from oarbank_sdk.contracts.document import Document
from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
)
from typing_extensions import TypeAliasType

LevelsAdditionalProperty = TypeAliasType(
    "LevelsAdditionalProperty", Annotated[StrictFloat, Field(ge=0.0, le=1.0)]
)
"""A level, 0 to 1."""


class JournalCause(Document):
    """An input, as its own line holds it."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """Moment in seconds on the journal's own clock, within 1e12 of 0."""
    kind: Literal['job', 'job_end', 'protected', 'pressure', 'sample', 'policy', 'tick']
    """Which input."""


class AgentJournal(Document):
    """One line of an agent's journal: what it heard (an input), or what it ordered and because of which inputs (an action). Which fields a line must have depends on its kind."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """Moment in seconds on the journal's own clock, within 1e12 of 0; of an action: when it fell due."""
    kind: Literal['job', 'job_end', 'protected', 'pressure', 'sample', 'policy', 'tick', 'duty', 'pause', 'resume', 'stop', 'release', 'ban', 'unban', 'admit', 'hold']
    """Inputs: job (one asks to run), job_end, protected (a program uses the GPU, or no longer), pressure, sample, policy, tick (time has passed). Actions: duty, pause, resume, stop, release (given back without a fault), ban, unban, admit, hold (it waits)."""
    job: Annotated[StrictStr | None, Field(min_length=1)] = None
    """The job's attempt, at least one character."""
    module: Annotated[StrictStr | None, Field(min_length=1)] = None
    """The job's module, or the module that is banned, at least one character."""
    cooperative: StrictBool | None = None
    """Of a job: it declares cooperative_throttle."""
    gpu_use: Literal['none', 'shared', 'exclusive'] | None = None
    """Of a job: how it uses the GPU."""
    pausable: StrictBool | None = None
    """Of a job: it declares cooperative_pause, or may be frozen."""
    active: StrictBool | None = None
    """Of protected: the program uses the GPU."""
    level: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)] = None
    """Of protected: the part of the GPU's time certified beside it, 0 to 1; null: none was."""
    levels: (
        dict[
            Annotated[str, StringConstraints(min_length=1, strict=True)],
            LevelsAdditionalProperty,
        ]
        | None
    ) = None
    """Of protected: levels by module, 0 to 1, where they differ from level."""
    program: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Of protected and pressure: which program, at least one character; null: the only one."""
    speed: Literal['learning', 'unknown'] | None = None
    """Of protected without a level: why it is kept back; learning (the program's own speed is being learnt), unknown (its counter says nothing); null: there is none."""
    value: StrictFloat | None = None
    """Of pressure: how much the program slowed, over its owner's target, so 1 is the target; null: unreadable."""
    share: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Of a sample: the job's busy time over about 2 s, 0 or more; null: unreadable."""
    low: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Of a sample: smallest share that the source's resolution allows, 0 or more; null: exact."""
    high: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Of a sample: largest share that the source's resolution allows, 0 or more; null: exact."""
    baseline: StrictBool | None = None
    """Of a sample: it only sets where the next one counts from."""
    gpu_jobs: Literal['never', 'when_no_gpu_protected', 'certified', 'always'] | None = (
        None
    )
    """Of a policy: the owner's rule for GPU work."""
    duty: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)] = None
    """Of a duty: the share of time to hold from now on, 0 to 1; null: none, the limit is lifted."""
    until: StrictFloat | None = None
    """Of a pause or a ban: its end, in seconds on the journal's clock; null: nobody knows (never for a ban)."""
    reason: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Of an action: why, for people."""
    because: list[JournalCause] | None = None
    """Of an action: the inputs that led to it, oldest first; null: an input has none."""


class FixtureDataset(Document):
    """The answer of a pretended host about one dataset."""

    model_config = ConfigDict(
        extra='allow',
    )
    kind: Annotated[StrictStr, Field(min_length=1)]
    """Kind of the dataset, as the module knows it."""
    attrs: dict[str, Any] = {}
    """Attributes of the dataset."""
    dir: StrictStr | None = None
    """Folder beside this file that is copied into the work directory; null: none."""
    files: list[Any] | None = None
    """Files of the dataset, as the host lists them; null: not listed."""


class FixtureImages(Document):
    """One set of signed images."""

    model_config = ConfigDict(
        extra='allow',
    )
    layout: StrictStr | None = None
    """Folder of an image layout beside this file; null: none."""
    members: list[StrictStr] = []
    """References of the images in the set."""


class FixtureGpuApis(Document):
    """Which GPU interfaces a node offers."""

    model_config = ConfigDict(
        extra='allow',
    )
    host: list[StrictStr] = []
    """Interfaces that processes of the host reach."""
    containers: list[StrictStr] = []
    """Interfaces that containers reach."""


class FixtureOperation(Document):
    """An operation that is applied twice: it must answer alike and declare its effects."""

    model_config = ConfigDict(
        extra='allow',
    )
    verb: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9_]{0,40}$')]
    """A verb of the manifest's operations: lower-case letters, digits and underscores, at most 41."""
    target: Any = None
    """What the operation is for, as the module takes it; null: nothing."""
    params: dict[str, Any] = {}
    """Parameters of the operation."""


class ServiceExpect(Document):
    """How a service must answer."""

    model_config = ConfigDict(
        extra='forbid',
    )
    status: Annotated[StrictInt, Field(ge=100, le=599)] = 200
    """HTTP status, 100 to 599."""


Platform = TypeAliasType(
    "Platform", Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9]*-[a-z0-9_]+$')]
)
"""A platform token, <os>-<arch>, such as linux-amd64; an open set."""


Name = TypeAliasType(
    "Name", Annotated[StrictStr, Field(max_length=64, pattern='^[a-z][a-z0-9_]*$')]
)
"""A name: a lower-case letter, then lower-case letters, digits and underscores, at most 64."""


Capability = TypeAliasType(
    "Capability",
    Annotated[StrictStr, Field(max_length=64, pattern='^[a-z0-9][a-z0-9._-]*$')],
)
"""A capability: lower-case letters, digits and ._- , at most 64."""


Sha256 = TypeAliasType("Sha256", Annotated[StrictStr, Field(pattern='^[0-9a-f]{64}$')])
"""A SHA-256: 64 lower-case hex digits."""


class ReportModule(Document):
    """The module that was judged."""

    model_config = ConfigDict(
        extra='allow',
    )
    id: StrictStr | None
    """Id from its manifest; null: the manifest could not be read."""
    version: StrictStr | None
    """Version from its manifest; null: the manifest could not be read."""
    dir: StrictStr
    """Folder as it was given."""


OnlyItem = TypeAliasType("OnlyItem", Annotated[StrictStr, Field(min_length=1)])


class ReportCounts(Document):
    """How many checks ended in each status."""

    model_config = ConfigDict(
        extra='allow',
    )
    pass_: Annotated[StrictInt, Field(alias='pass', ge=0)]
    """Checks that passed, 0 or more."""
    fail: Annotated[StrictInt, Field(ge=0)]
    """Checks that failed, 0 or more."""
    unknown: Annotated[StrictInt, Field(ge=0)]
    """Checks that could not tell, 0 or more."""
    skip: Annotated[StrictInt, Field(ge=0)]
    """Checks that do not apply here, 0 or more."""
    warn: Annotated[StrictInt, Field(ge=0)]
    """Pieces of advice, 0 or more; they never change the verdict."""


class ReportHost(Document):
    """Where the kit ran."""

    model_config = ConfigDict(
        extra='allow',
    )
    platform: StrictStr
    """Platform token of the host."""
    python: StrictStr
    """Version of the kit's Python."""
    cpus: Annotated[StrictInt, Field(ge=1)]
    """Processors the kit may use, 1 or more."""


class ReportCheck(Document):
    """One thing that was checked."""

    model_config = ConfigDict(
        extra='allow',
    )
    suite: Annotated[StrictStr, Field(min_length=1)]
    """Group of checks, such as manifest or runner."""
    name: Annotated[StrictStr, Field(min_length=1)]
    """What was checked, in words."""
    status: Literal['pass', 'fail', 'unknown', 'skip', 'warn']
    """pass, fail, unknown (could not tell), skip (does not apply) or warn (advice)."""
    detail: Annotated[StrictStr, Field(max_length=600)]
    """Why, in a sentence, at most 600 characters; may be empty."""
    rule: Annotated[
        StrictStr | None, Field(pattern='^[a-z][a-z0-9_-]*(\\.[a-z0-9][a-z0-9_-]*)+$')
    ] = None
    """A dotted id, the rule that was checked; null: none."""
    took_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """How long the check took, in seconds, 0 or more; null: not timed."""
    evidence: dict[str, Any] | None = None
    """What the verdict rests on, by name; null: nothing beyond the sentence."""


class ReportedDuty(Document):
    """One gpu_duty report of the runner that was used."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """End of its interval, in Unix seconds."""
    share: Annotated[StrictFloat, Field(ge=0.0, le=1.0)]
    """Share that the runner reported, 0 to 1."""
    duty: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)]
    """Duty it says was asked, 0 to 1; null: none."""
    device: StrictStr
    """Where it says the units ran."""
    window_s: Annotated[StrictFloat | None, Field(gt=0.0)] = None
    """Length of its interval in seconds, above 0; null: not said."""
    longest_unit_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Its longest unit in seconds, 0 or more; null: not said."""


class MeasuredElsewhere(Document):
    """One more device, with the same keys."""

    model_config = ConfigDict(
        extra='allow',
    )
    device: StrictStr
    """What was measured, gpu or cpu."""
    share: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Mean share over the window, 0 or more; null: could not tell."""


class MeasuredDuty(Document):
    """What the kit measured beside the runner's reports."""

    model_config = ConfigDict(
        extra='allow',
    )
    source: StrictStr | None = None
    """Where the readings came from; null: nothing was measured."""
    device: StrictStr | None = None
    """What was measured, gpu or cpu; null: nothing."""
    share: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Mean share over the window, 0 or more; null: could not tell."""
    ticks: Annotated[StrictInt | None, Field(ge=0)] = None
    """Readings within the window, 0 or more; null: none counted."""
    worst_2s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Largest share of any two seconds, 0 or more; null: could not tell."""
    tick_median_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Median distance of two readings in seconds, 0 or more; null: not known."""
    tick_worst_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Largest distance of two readings in seconds, 0 or more; null: not known."""
    waited_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """How long the runner waited for a processor, in seconds, 0 or more; null: not known."""
    clock: StrictStr | None = None
    """How the source read time, in its own words; null: not said."""
    reason: StrictStr | None = None
    """Why there is no share; null: there is one."""
    others: Annotated[list[MeasuredElsewhere], Field(validate_default=True)] = []
    """The same of other devices that were measured too."""


class DutyResult(Document):
    """Both sides' numbers for one duty spec."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: StrictStr
    """Name of the duty spec."""
    stage: StrictStr | None
    """Stage that ran; null: the default stage."""
    duty: Annotated[StrictFloat, Field(ge=0.0, le=1.0)]
    """Duty that was asked, 0 to 1."""
    window_s: Annotated[StrictFloat, Field(gt=0.0)]
    """How long the share was measured, in seconds, above 0."""
    limit: Annotated[StrictFloat, Field(ge=0.0)]
    """Largest share that passes, 0 or more: the duty and the tolerance."""
    reports: list[ReportedDuty]
    """Reports that were used, in order."""
    measured: Annotated[MeasuredDuty, Field(title='MeasuredDuty')]
    """What the kit measured beside the runner's reports."""


class ConformanceReport(Document):
    """What the conformance kit found about one module, as JSON. Readers keep keys they do not know."""

    model_config = ConfigDict(
        extra='allow',
    )
    report: Literal['conformance-report-1']
    """Always conformance-report-1."""
    module: Annotated[ReportModule, Field(title='ReportModule')]
    """The module that was judged."""
    kit: Annotated[StrictStr, Field(min_length=1)]
    """Version of the kit."""
    only: list[OnlyItem] = []
    """Patterns of the rules that were chosen; none: all of them. Of the others a chosen run says nothing."""
    ok: StrictBool | None
    """True: conforms; false: does not; null: something that must hold could not be told."""
    exit: Annotated[StrictInt, Field(ge=0, le=3)]
    """Exit code of the kit: 0 for ok true, 1 for false, 3 for null."""
    started: StrictFloat
    """When the run began, in Unix seconds."""
    took_s: Annotated[StrictFloat, Field(ge=0.0)]
    """How long the run took, in seconds, 0 or more."""
    counts: Annotated[ReportCounts, Field(title='ReportCounts')]
    """How many checks ended in each status."""
    host: Annotated[ReportHost, Field(title='ReportHost')]
    """Where the kit ran."""
    checks: list[ReportCheck]
    """Every check, in the order in which it ran."""
    duty_specs: Annotated[list[DutyResult], Field(validate_default=True)] = []
    """Numbers for each duty spec that was run."""


class GpuDutyData(Document):
    """What was asked, and how the share was found."""

    model_config = ConfigDict(
        extra='allow',
    )
    duty: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)]
    """Duty asked over the whole interval, 0 to 1; null: none was in force."""
    device: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9_]*$')]
    """Where the units ran: gpu, cpu, or another name, which readers treat as gpu."""
    window_s: Annotated[StrictFloat | None, Field(gt=0.0)] = None
    """Length of the interval in seconds of a monotonic clock, above 0; null: not said."""
    units: Annotated[StrictInt | None, Field(ge=0)] = None
    """Units that ended in the interval, 0 or more; null: not said."""
    idle_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Seconds in which the governor held units back in the interval, 0 or more; null: not said."""
    busy_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Seconds in which units kept the device busy in the interval, 0 or more; null: not said."""
    busy_source: Literal['wall', 'device'] | None = None
    """What a unit is charged with: wall time, or device time; null: not said."""
    longest_unit_s: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Longest unit that ended in the interval, in seconds, 0 or more; null: not said."""


class GpuDutyEvent(Document):
    """The gpu_duty metric among a runner's events: the share of an interval in which its units kept the device busy, about every two seconds."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """End of the interval, in Unix seconds."""
    kind: Literal['metric']
    """Always metric."""
    name: Literal['gpu_duty']
    """Always gpu_duty."""
    value: Annotated[StrictFloat, Field(ge=0.0, le=1.0)]
    """Share of the interval in which units kept the device busy, 0 to 1."""
    data: Annotated[GpuDutyData, Field(title='GpuDutyData')]
    """What was asked, and how the share was found."""


Pid = TypeAliasType("Pid", Annotated[StrictInt, Field(ge=1)])


class Unreadable(Document):
    """A process that could not be read."""

    model_config = ConfigDict(
        extra='allow',
    )
    pid: Annotated[StrictInt | None, Field(ge=1)]
    """Process id, 1 or more; null: the whole source."""
    reason: Annotated[StrictStr, Field(min_length=1)]
    """Why, in a sentence."""


class ProcessGain(Document):
    """One process of the group."""

    model_config = ConfigDict(
        extra='allow',
    )
    pid: Annotated[StrictInt, Field(ge=1)]
    """Process id, 1 or more."""
    start: StrictFloat | None
    """When the process started, in Unix seconds; with the pid it names one process; null: not known."""
    busy_s: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Seconds of device time in the interval, 0 or more; null: could not tell."""


class GpuSample(Document):
    """How much time of a device a group of processes used in an interval; one line of a sampler. What cannot be read is null with a reason, never 0."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """End of the interval, in Unix seconds."""
    window_s: Annotated[StrictFloat, Field(gt=0.0)]
    """Length of the interval in seconds of a monotonic clock, above 0."""
    pids: list[Pid]
    """Processes of the group."""
    share: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Busy time over the interval, 0 or more, above 1 where engines add up; null: could not tell."""
    low: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Smallest share that the source's resolution allows, 0 or more; null: exact."""
    high: Annotated[StrictFloat | None, Field(ge=0.0)] = None
    """Largest share that the source's resolution allows, 0 or more; null: exact."""
    busy_s: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Seconds of device time in the interval, 0 or more; null: could not tell."""
    source: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9-]*$')]
    """A source: drm-fdinfo, nvml, kfd, ioreg, pdh, cpu-threads, recording, or another; an open set."""
    unknown: list[Unreadable]
    """What could not be read."""
    processes: list[ProcessGain] | None = None
    """The group one by one; null: not broken down."""


Level1 = TypeAliasType(
    "Level1", Annotated[StrictFloat, Field(ge=0.0, le=1.0, title='GuardLevel')]
)
"""A part of the GPU's time, 0 to 1, or @ and the path of a certificate that holds it."""


Level2 = TypeAliasType(
    "Level2", Annotated[StrictStr, Field(min_length=2, title='GuardLevel')]
)
"""A part of the GPU's time, 0 to 1, or @ and the path of a certificate that holds it."""


Values1 = TypeAliasType(
    "Values1", Annotated[StrictStr, Field(min_length=2, title='GuardValues')]
)
"""An object, or @ and the path of a JSON file that holds one."""


class GuardProgress(Document):
    """A counter that only grows: steps, frames, samples. Either a file or a command."""

    model_config = ConfigDict(
        extra='forbid',
    )
    file: Annotated[StrictStr | None, Field(min_length=1)] = None
    """A file that holds the number and nothing else, at least one character."""
    command: Annotated[StrictStr | None, Field(min_length=1)] = None
    """A line for the shell that prints the number and nothing else, at least one character; run every 2 s."""


class GuardJob(Document):
    """A job with its payload, or an operation that the module's coordinator turns into jobs."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=40, pattern='^[a-z0-9][a-z0-9_-]*$')]
    """A name of the owner's choice: small letters, digits, _ and -, 1 to 40 characters."""
    module: Annotated[StrictStr, Field(min_length=1)]
    """The module's directory, at least one character."""
    stage: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Which stage, at least one character; null: the default one. Only with payload."""
    payload: dict[str, Any] | Values1 | None = None
    """The job's payload."""
    op: Annotated[StrictStr | None, Field(min_length=1)] = None
    """The operation, such as queue_prompts, at least one character."""
    params: dict[str, Any] | Values1 | None = None
    """The operation's params."""
    data: Annotated[StrictStr | None, Field(min_length=1)] = None
    """The module's own folder, with its models, at least one character; null: one in the state."""


class GuardWorkload(Document):
    """A process that runs until it is stopped; it reads its own control document, with the SDK's supervisor for one."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=40, pattern='^[a-z0-9][a-z0-9_-]*$')]
    """A name of the owner's choice: small letters, digits, _ and -, 1 to 40 characters."""
    command: Annotated[list[StrictStr], Field(min_length=1)]
    """The program and its words, at least one."""
    folder: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Where it runs, at least one character; null: the folder of this file."""
    env: dict[str, StrictStr] = {}
    """Environment variables that it gets besides those of this program."""
    capabilities: list[Literal['cooperative_throttle', 'cooperative_pause', 'freeze_ok']] = (
        []
    )
    """What it declares: cooperative_throttle (it holds a duty), cooperative_pause, freeze_ok (the system may freeze it)."""
    gpu_use: Literal['none', 'shared', 'exclusive'] = 'shared'
    """How it uses the GPU."""
    stop_grace_s: Annotated[StrictFloat, Field(ge=1.0, le=600.0)] = 20
    """Seconds that it may take to end, 1 to 600."""


class GuardLineProgram(Document):
    """How a protected program stands."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(min_length=1)]
    """Its name in the configuration, at least one character."""
    state: Literal['not running', 'quiet', 'learning its speed', 'its speed is unknown', 'uses the GPU']
    """not running; quiet (it runs and does not use what is measured); learning its speed (it uses it, and its level does not count yet); its speed is unknown (the same, and its counter says nothing); uses the GPU."""
    active: StrictBool
    """It counts as using the GPU."""
    share: Annotated[StrictFloat | None, Field(ge=0.0)]
    """The share of time that it keeps the device busy, newest sample, 0 or more; null: not known."""
    rate: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Counts a second now, 0 or more; null: not known."""
    baseline: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Counts a second while nothing of ours runs, 0 or more; null: not learnt yet."""
    pressure: Annotated[StrictFloat | None, Field(ge=0.0)]
    """How much it slowed, over its owner's target, so 1 is the target; 0 or more; null: not known."""
    fault: Annotated[StrictStr | None, Field(min_length=1)]
    """Why its counter says nothing, at least one character, for people; null: it says something, or there is none."""


class GuardLineJob(Document):
    """How an entry for jobs, or for a workload, stands."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(min_length=1)]
    """The entry's name in the configuration, at least one character."""
    state: Literal['waits', 'runs', 'paused', 'stopping', 'ended']
    """waits (nothing of it runs yet), runs, paused, stopping, ended (nothing is left of it)."""
    left: Annotated[StrictInt, Field(ge=0)]
    """Jobs that are not done, the one that runs included, 0 or more."""
    waits: Annotated[StrictStr | None, Field(min_length=1)]
    """Why it waits, at least one character, for people; null: it does not, or nobody has said."""
    asked: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)]
    """The duty in force, 0 to 1; null: no limit, or nothing runs."""
    held: Annotated[StrictFloat | None, Field(ge=0.0)]
    """The share of time that it kept the device busy, newest sample, 0 or more; null: not known."""
    reported: Annotated[StrictFloat | None, Field(ge=0.0)]
    """The same by its own word, which decides nothing, 0 or more; null: it said none."""
    strikes: Annotated[StrictInt, Field(ge=0)]
    """Strikes that count against it, 0 or more."""
    phase: Annotated[StrictStr | None, Field(min_length=1)]
    """What its runner does, by its own word, at least one character; null: it said none."""
    outcome: Annotated[StrictStr | None, Field(min_length=1)]
    """What came of the last of its jobs that ended, at least one character, for people; null: none has."""


class MeasuredHow(Document):
    """What was measured, and how."""

    model_config = ConfigDict(
        extra='allow',
    )
    progress: Literal['file', 'command']
    """Where the program's counter was read."""
    held: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9-]*$')]
    """The source of the work's share: drm-fdinfo, nvml, kfd, ioreg, pdh, cpu-threads, or another; an open set."""
    device: Literal['gpu', 'cpu']
    """Whose time it is: the GPU's, or the CPU's of a stand-in."""
    window_s: Annotated[StrictFloat, Field(gt=0.0)]
    """Length of a window in seconds, above 0."""
    settle_s: Annotated[StrictFloat, Field(ge=0.0)]
    """Seconds left out after each change, 0 or more."""


Gpu = TypeAliasType("Gpu", Annotated[StrictStr, Field(min_length=1)])


class CertifiedHost(Document):
    """The machine; the certificate is void on any other."""

    model_config = ConfigDict(
        extra='allow',
    )
    platform: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9]*-[a-z0-9_]+$')]
    """Platform token."""
    os: Annotated[StrictStr, Field(min_length=1)]
    """Name and version of the operating system."""
    driver: Annotated[StrictStr | None, Field(min_length=1)]
    """Version of the GPU's driver; null: part of the operating system, or not told."""
    gpus: list[Gpu]
    """Each GPU that is seen, by its name."""
    kit: Annotated[StrictStr, Field(min_length=1)]
    """Version of the packages that measured."""


class CertifiedModel(Document):
    """A model."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(min_length=1)]
    """Its name in the payload."""
    digest: Sha256 | None
    """SHA-256 over the sizes of its files and samples of their bytes; null: no such file was found."""


class ProgressWindow(Document):
    """A stretch of time."""

    model_config = ConfigDict(
        extra='allow',
    )
    kind: Literal['paused', 'running']
    """Whether the work was paused or running."""
    t: StrictFloat
    """Its begin, in Unix seconds."""
    window_s: Annotated[StrictFloat, Field(gt=0.0)]
    """Its length in seconds, above 0."""
    progress: StrictFloat | None
    """What the program's counter gained; null: not told."""
    held: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Share of the device's time that the work took, 0 or more; null: not told."""


class Module(Document):
    """Who the module is."""

    model_config = ConfigDict(
        extra='allow',
    )
    id: Annotated[
        StrictStr, Field(max_length=128, pattern='^[a-z0-9]+(\\.[a-z0-9][a-z0-9-]*)+$')
    ]
    """Reverse-DNS id, never used again for another module; its last label is the short name."""
    version: Annotated[
        StrictStr,
        Field(
            pattern='^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$'
        ),
    ]
    """Version of the module."""
    compat: Annotated[StrictStr, Field(max_length=64, pattern='^[A-Za-z0-9._-]+$')]
    """Letters, digits and ._- , at most 64: part of every job key; changes only when equal inputs mean other results."""
    publisher: StrictStr | None = None
    """Who publishes it; null: not said."""
    license: StrictStr | None = None
    """SPDX expression; null: not said."""
    description: StrictStr | None = None
    """What it does, for people; null: not said."""


ModuleProtocolItem = TypeAliasType(
    "ModuleProtocolItem", Annotated[StrictInt, Field(ge=1)]
)


RunnerProtocolItem = TypeAliasType(
    "RunnerProtocolItem", Annotated[StrictInt, Field(ge=1)]
)


class ModuleRequires(Document):
    """What the host must offer."""

    model_config = ConfigDict(
        extra='allow',
    )
    core: Annotated[
        StrictStr | None,
        Field(
            pattern='^ *(>=|<=|==|>|<) *[0-9]+(\\.[0-9]+){0,2}( *, *(>=|<=|==|>|<) *[0-9]+(\\.[0-9]+){0,2})* *$'
        ),
    ] = None
    """A range of core versions, compared as numbers, such as >=2.10,<3; null: any."""
    platforms: Annotated[list[Platform], Field(min_length=1)]
    """Platform tokens it runs on, at least one."""
    module_protocol: list[ModuleProtocolItem] = []
    """Majors of the module protocol it speaks."""
    runner_protocol: list[RunnerProtocolItem] = []
    """Majors of the runner protocol it speaks."""


class Sandbox(Document):
    """What the runner may reach."""

    model_config = ConfigDict(
        extra='allow',
    )
    net: Annotated[StrictStr, Field(min_length=1)] = 'none'
    """Network: none, or a name of the host's."""
    devices: dict[str, StrictStr] = {}
    """Access to each kind of device, such as gpu = compute."""


OverItem = TypeAliasType("OverItem", Annotated[StrictStr, Field(min_length=1)])


class ResultDigest(Document):
    """Which part of a result must be the same everywhere."""

    model_config = ConfigDict(
        extra='allow',
    )
    version: Annotated[StrictInt, Field(ge=1)] = 1
    """Version of the digest, 1 or more."""
    over: Annotated[list[OverItem], Field(min_length=1)]
    """Fields of the payload that are hashed, at least one."""


class Results(Document):
    """What its results look like."""

    model_config = ConfigDict(
        extra='allow',
    )
    schema_: Annotated[StrictStr | None, Field(alias='schema', min_length=1)] = None
    """Schema of the payload, a path in the bundle; null: none."""
    schema_version: Annotated[StrictInt, Field(ge=1)] = 1
    """Major of that schema, 1 or more."""
    determinism: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9_]*$')] = 'exact'
    """A word for how results compare; none: never compared."""
    digest: ResultDigest | None = None
    """What is hashed to compare; null: nothing."""
    fields: list[dict[str, Any]] = []
    """Fields to show, as the host takes them."""
    max_inline_kb: Annotated[StrictInt, Field(ge=1, le=1024)] = 64
    """Largest payload in KiB, 1 to 1024."""


class Goldens(Document):
    """Tasks whose result is known."""

    model_config = ConfigDict(
        extra='allow',
    )
    fixtures: Annotated[StrictStr, Field(min_length=1)]
    """Files of the goldens, a glob in the bundle."""


ExecItem = TypeAliasType("ExecItem", Annotated[StrictStr, Field(min_length=1)])


class Runtime(Document):
    """What runs the program."""

    model_config = ConfigDict(
        extra='allow',
    )
    kind: Literal['python', 'uv', 'native']
    """python: the node's; uv: a locked environment, which needs lock and python; native: none."""
    lock: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Lock file in the bundle, for uv; null: none."""
    python: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Python version, for uv; null: not said."""


TimeoutsAdditionalProperty = TypeAliasType(
    "TimeoutsAdditionalProperty", Annotated[StrictFloat, Field(gt=0.0, le=3600.0)]
)


class Coordinator(Document):
    """The program that plans and judges."""

    model_config = ConfigDict(
        extra='allow',
    )
    exec: Annotated[list[ExecItem], Field(min_length=1)]
    """Program and first arguments; the program is python, or {bundle}/ and a path in the bundle."""
    runtime: Annotated[Runtime, Field(validate_default=True)] = {'kind': 'python'}
    """What runs the program."""
    capabilities: list[Capability] = []
    """Verbs it answers beside the required ones."""
    concurrency: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    """Requests at the same time, 1 to 64."""
    timeouts: dict[str, TimeoutsAdditionalProperty] = {}
    """Longest answer of a verb in seconds, above 0 and at most 3600; 10 where not said."""
    env: dict[
        Annotated[str, StringConstraints(pattern=r'^[A-Z][A-Z0-9_]*$', strict=True)],
        StrictStr,
    ] = {}
    """Environment variables to add; names in capitals, never one that the host sets."""


class GpuUse(Document):
    """How it uses the GPU."""

    model_config = ConfigDict(
        extra='allow',
    )
    use: Literal['none', 'shared', 'exclusive'] = 'none'
    """none, shared with others, or exclusive."""
    apis_any: list[StrictStr] = []
    """Interfaces of which the node must offer one; none: no condition."""


class Runner(Document):
    """The program that does the work."""

    model_config = ConfigDict(
        extra='allow',
    )
    exec: Annotated[list[ExecItem], Field(min_length=1)]
    """Program and first arguments; the program is python, or {bundle}/ and a path in the bundle."""
    runtime: Annotated[Runtime, Field(validate_default=True)] = {'kind': 'python'}
    """What runs the program."""
    capabilities: list[Capability] = []
    """What it can do; unknown ones are kept."""
    stop_grace_s: Annotated[StrictFloat, Field(ge=1.0, le=600.0)] = 20
    """Seconds between a stop and the end, 1 to 600."""
    checkpoint_grace_s: Annotated[StrictFloat | None, Field(ge=1.0)] = None
    """Seconds between a stop with a checkpoint and the end, 1 or more; null: stop_grace_s."""
    gpu: Annotated[GpuUse, Field(title='GpuUse', validate_default=True)] = {}
    """How it uses the GPU."""
    env: dict[
        Annotated[str, StringConstraints(pattern=r'^[A-Z][A-Z0-9_]*$', strict=True)],
        StrictStr,
    ] = {}
    """Environment variables to add; names in capitals, never one that the host sets."""


class Retry(Document):
    """How often a task is tried."""

    model_config = ConfigDict(
        extra='allow',
    )
    max_attempts: Annotated[StrictInt, Field(ge=1, le=20)] = 3
    """Attempts, 1 to 20."""


class Resources(Document):
    """What the host sets aside for a task."""

    model_config = ConfigDict(
        extra='allow',
    )
    cpu: Annotated[StrictFloat, Field(gt=0.0, le=256.0)] = 1
    """Processors, above 0 and at most 256."""
    mem_gb: Annotated[StrictFloat, Field(gt=0.0, le=1024.0)] = 1
    """Memory in GB, above 0 and at most 1024."""


class StageRequires(Document):
    """What a node needs to run it."""

    model_config = ConfigDict(
        extra='allow',
    )
    capabilities: list[Capability] = []
    """Capabilities of the node."""
    resources: Annotated[Resources, Field(title='Resources', validate_default=True)] = (
        {}
    )
    """What the host sets aside for a task."""


class Stage(Document):
    """One kind of task that the module runs."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(max_length=64, pattern='^[a-z][a-z0-9_]*$')]
    """Name of the stage, unique in the manifest."""
    default: StrictBool = False
    """True for the stage that a task without a stage runs."""
    after: StrictStr | list[StrictStr] | None = None
    """Stage or stages whose results it takes; null: none, it stands alone."""
    determinism: Annotated[StrictStr | None, Field(pattern='^[a-z][a-z0-9_]*$')] = None
    """A word for how its results compare; none: never compared; null: as the results table says."""
    timeout_s: Annotated[StrictFloat, Field(gt=0.0, le=86400.0)] = 1800
    """Longest run in seconds, above 0 and at most 86400."""
    retry: Annotated[Retry, Field(title='Retry', validate_default=True)] = {}
    """How often a task is tried."""
    requires: Annotated[
        StageRequires, Field(title='StageRequires', validate_default=True)
    ] = {}
    """What a node needs to run it."""


class Operation(Document):
    """Something an owner may ask the module for."""

    model_config = ConfigDict(
        extra='allow',
    )
    verb: Annotated[StrictStr, Field(pattern='^[a-z][a-z0-9_]{0,40}$')]
    """A name of lower-case letters, digits and underscores, at most 41."""
    title: Annotated[StrictStr, Field(max_length=80, min_length=1)]
    """Its name for people, 1 to 80 characters."""
    tier: StrictStr | None = None
    """How far-reaching it is; null: not said."""
    target: StrictStr | None = None
    """What it is asked of; null: not said."""
    params_schema: StrictStr | None = None
    """Schema of its parameters, a path in the bundle; null: takes none."""
    effects: list[StrictStr] = []
    """Effects that it may declare."""


class Provenance(Document):
    """How the result came to be."""

    model_config = ConfigDict(
        extra='allow',
    )
    argv: dict[str, list[StrictStr]] = {}
    """Command line of each tool, by name."""
    tool_versions: dict[str, StrictStr] = {}
    """Version of each tool, by name, as text."""
    host: Any = None
    """What is known of the host; null: nothing."""


class ArtifactFile(Document):
    """A file of an artifact: still in the work directory (local), or already stored (digest and size)."""

    model_config = ConfigDict(
        extra='allow',
    )
    path: StrictStr
    """Portable path inside the artifact, at most 200 bytes."""
    local: StrictStr | None = None
    """Portable path of a regular file below the work directory; null: already stored."""
    digest: Sha256 | None = None
    """SHA-256 of a stored file, 64 hex digits; null: not stored yet."""
    size: Annotated[StrictInt | None, Field(ge=0)] = None
    """Bytes of a stored file, 0 or more; null: not stored yet."""


class Artifact(Document):
    """A named group of files."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(max_length=64, pattern='^[a-z][a-z0-9_]*$')]
    """Name of the artifact, unique in the result."""
    files: Annotated[list[ArtifactFile], Field(min_length=1)]
    """Its files, at least one."""


class ResultEnvelope(Document):
    """result.json, written last and atomically by a runner that succeeded. Readers keep fields they do not know, at every level."""

    model_config = ConfigDict(
        extra='allow',
    )
    envelope: Annotated[StrictInt, Field(ge=1, le=1)] = 1
    """Major of the envelope, 1."""
    schema_: Annotated[
        StrictStr,
        Field(
            alias='schema', pattern='^[a-z0-9][a-z0-9.-]*/(spec|result)@[1-9][0-9]*$'
        ),
    ]
    """Shape of the payload: <module short name>/spec@<major> or /result@<major>."""
    module_version: Annotated[
        StrictStr,
        Field(
            pattern='^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$'
        ),
    ]
    """Version of the module that ran."""
    protocol: Annotated[StrictInt, Field(ge=1, le=1)] = 1
    """Major of the runner protocol, 1."""
    effective: dict[str, Any] = {}
    """What was really used, such as the backend."""
    payload: dict[str, Any]
    """The result itself; numbers that must compare exactly travel as decimal strings."""
    provenance: Provenance | None = None
    """How the result came to be; null: not said."""
    artifacts: Annotated[list[Artifact], Field(validate_default=True)] = []
    """Files that are too long for the payload, in groups."""


class RunnerControl(Document):
    """control.json in a runner's work directory: what is in force from the next safe point on. A document is the whole state, never a change to it."""

    model_config = ConfigDict(
        extra='allow',
    )
    seq: StrictInt
    """Counts up by 1 from 0; a document applies only when its seq is above the last applied. Writers stay within 2^53."""
    stop: StrictBool = False
    """True: end within stop_grace_s. Never null."""
    pause: StrictBool = False
    """True: hold at the next safe point until a newer document says otherwise. Never null."""
    threads: Annotated[StrictInt | None, Field(ge=1)] = None
    """Most active compute threads, 1 or more; null: no limit."""
    gpu_duty: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)] = None
    """Largest share of time on the GPU, 0 to 1; 0: wait; null: no limit."""
    reason: StrictStr | None = None
    """Why, for logs; null: not said."""
    checkpoint: StrictBool = False
    """True, only beside stop: write a checkpoint first, within checkpoint_grace_s."""


SupportedItem = TypeAliasType("SupportedItem", Annotated[StrictInt, Field(ge=1)])


class RunnerProtocol(Document):
    """Protocol majors that the runner speaks."""

    model_config = ConfigDict(
        extra='allow',
    )
    supported: Annotated[list[SupportedItem], Field(min_length=1)]
    """Majors, 1 or more each; at least one."""


class DoctorCheck(Document):
    """One thing that was looked at."""

    model_config = ConfigDict(
        extra='allow',
    )
    name: Annotated[StrictStr, Field(min_length=1)]
    """What was looked at."""
    ok: StrictBool
    """Whether it was found in order."""
    detail: StrictStr = ''
    """What was found, for people. Never null."""


class RunnerDoctor(Document):
    """The last line that `doctor --json` prints: what a runner finds on this node."""

    model_config = ConfigDict(
        extra='allow',
    )
    runner_protocol: Annotated[RunnerProtocol, Field(title='RunnerProtocol')]
    """Protocol majors that the runner speaks."""
    health: Literal['healthy', 'unhealthy', 'undetected']
    """healthy; unhealthy, which alerts somebody; or undetected, which does not."""
    capabilities: list[Capability] = []
    """Capabilities that the module has on this node."""
    attrs: dict[str, Any] = {}
    """What else was found; platform, when present, is the node's platform token, and backends lists what can be loaded."""
    checks: Annotated[list[DoctorCheck], Field(validate_default=True)] = []
    """What was looked at; a failed one named like a capability takes it away."""


class EventFile(Document):
    """A file of a checkpoint."""

    model_config = ConfigDict(
        extra='allow',
    )
    path: StrictStr
    """Portable path below the work directory, at most 200 bytes."""
    name: StrictStr | None = None
    """What the file is, for people; null: not said."""


class RunnerEvent(Document):
    """One line of events.ndjson, written by a runner that declares progress_events or checkpoint."""

    model_config = ConfigDict(
        extra='allow',
    )
    t: StrictFloat
    """When, in Unix seconds."""
    kind: Literal['log', 'progress', 'metric', 'checkpoint', 'phase']
    """What the line tells; a closed set."""
    level: Literal['debug', 'info', 'warn', 'error'] | None = None
    """Weight of a log line; null: not said."""
    msg: StrictStr | None = None
    """Text for people; null: none."""
    fraction: Annotated[StrictFloat | None, Field(ge=0.0, le=1.0)] = None
    """Progress, 0 to 1; null: not said."""
    name: StrictStr | None = None
    """Name of the metric or phase; null: none."""
    value: StrictFloat | None = None
    """Value of the metric in its own unit; null: none."""
    data: dict[str, Any] = {}
    """More about it; of a checkpoint at most 4096 bytes as compact JSON."""
    files: Annotated[list[EventFile], Field(validate_default=True)] = []
    """Files of a checkpoint."""


class RunnerFailure(Document):
    """failure.json, written atomically by a runner before it exits other than 0."""

    model_config = ConfigDict(
        extra='allow',
    )
    reason: Annotated[
        StrictStr,
        Field(
            max_length=80,
            pattern='^(bad_input|mode_mismatch|oom|doctor|no_metrics|[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_.-]*)$',
        ),
    ]
    """One of bad_input, mode_mismatch, oom, doctor and no_metrics, or <module short name>/<code>; at most 80 characters."""
    detail: StrictStr = ''
    """Text for people; readers cut it at 4 KiB. Never null."""
    retryable: StrictBool | None = None
    """Whether trying again may help; null: the exit code says."""
    fault: Literal['job', 'host', 'transient'] | None = None
    """Whose fault it is, above the exit code; null: the exit code says."""


class SpecResume(Document):
    """A checkpoint of an earlier attempt."""

    model_config = ConfigDict(
        extra='allow',
    )
    from_attempt: Annotated[StrictInt, Field(ge=0)]
    """Number of the attempt that wrote it, 0 or more."""
    digest: Annotated[StrictStr, Field(pattern='^[0-9a-f]{64}$')]
    """SHA-256 of the checkpoint, 64 hex digits."""
    data: dict[str, Any] = {}
    """Data of the checkpoint event."""


class SpecEnvelope(Document):
    """spec.json in a runner's work directory: one task. Readers keep fields they do not know, at every level."""

    model_config = ConfigDict(
        extra='allow',
    )
    envelope: Annotated[StrictInt, Field(ge=1, le=1)] = 1
    """Major of the envelope, 1."""
    schema_: Annotated[
        StrictStr,
        Field(
            alias='schema', pattern='^[a-z0-9][a-z0-9.-]*/(spec|result)@[1-9][0-9]*$'
        ),
    ]
    """Shape of the payload: <module short name>/spec@<major> or /result@<major>."""
    module_id: Annotated[
        StrictStr, Field(max_length=128, pattern='^[a-z0-9]+(\\.[a-z0-9][a-z0-9-]*)+$')
    ]
    """Id of the module that runs the task."""
    module_version: Annotated[
        StrictStr,
        Field(
            pattern='^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$'
        ),
    ]
    """Version of the module that runs the task."""
    job_key: StrictStr
    """Key of the task: 64 hex digits, and :<stage> for a stage that is not the default one."""
    protocol: Annotated[StrictInt, Field(ge=1, le=1)] = 1
    """Major of the runner protocol, 1."""
    stage: Name | None = None
    """Stage to run; null: the default stage."""
    datasets: list[StrictStr] = []
    """Ids of the datasets that are granted."""
    mounts: dict[str, StrictStr] = {}
    """Portable path below the work directory for each dataset id."""
    inputs: dict[str, Any] = {}
    """Results of the stages that ran before, by stage."""
    resources: dict[str, Any] = {}
    """What is set aside for the task: cpu in processors, mem_gb in GB."""
    timeout_s: Annotated[StrictFloat | None, Field(gt=0.0)] = None
    """Longest run in seconds, above 0; null: the reader's own limit."""
    platform: Platform | None = None
    """Platform token of the node; null: not said."""
    resume: SpecResume | None = None
    """Where an earlier attempt left off; null: nowhere."""
    payload: dict[str, Any]
    """The task itself, as the module takes it."""


class FixtureNodeClass(Document):
    """A class of nodes that goldens are asked for."""

    model_config = ConfigDict(
        extra='allow',
    )
    platform: Platform | None = None
    """Platform token; null: any."""
    os_version: StrictStr | None = None
    """Version of the system; null: not said."""
    cpu: Any = None
    """What is known of the processor; null: nothing."""
    gpus: list[Any] | None = None
    """What is known of the GPUs; null: nothing."""
    capabilities: list[StrictStr] = []
    """Capabilities that nodes of the class have."""
    pools: dict[str, Any] = {}
    """Pools of the node, by name."""
    gpu_apis: FixtureGpuApis | None = None
    """GPU interfaces of the node; null: not said."""


class RunnerExpect(Document):
    """How a runner task must end."""

    model_config = ConfigDict(
        extra='forbid',
    )
    exit: Annotated[StrictInt, Field(ge=0, le=255)] = 0
    """Exit code, 0 to 255."""
    artifacts: list[Name] | None = None
    """Names of the artifacts that the result must list; null: not checked."""
    reason: StrictStr | None = None
    """Reason that failure.json must give; null: not checked."""


class RunnerSpec(Document):
    """A task beside the goldens, run once."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=80, min_length=1)]
    """Name of the task, 1 to 80 characters, unique among runner_specs."""
    stage: Name | None = None
    """Stage that runs; null: the default stage."""
    payload: dict[str, Any]
    """Payload of the task, as the module takes it."""
    datasets: list[StrictStr] = []
    """Ids of the datasets that are granted, keys of the datasets above."""
    mounts: dict[str, StrictStr] = {}
    """Portable path below the work directory for each dataset id."""
    expect: Annotated[
        RunnerExpect, Field(title='RunnerExpect', validate_default=True)
    ] = {}
    """How a runner task must end."""


class ServiceSpec(Document):
    """A request to an endpoint service."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=80, min_length=1)]
    """Name of the request, 1 to 80 characters, unique among service_specs."""
    service: Annotated[StrictStr, Field(max_length=64, pattern='^[a-z][a-z0-9_]*$')]
    """Service that is asked."""
    method: Annotated[StrictStr, Field(min_length=1)] = 'POST'
    """HTTP method."""
    path: Annotated[StrictStr, Field(min_length=1)]
    """Path of the request, at least one character."""
    body: dict[str, Any] | list[Any] | None = None
    """Body as JSON: an object or a list; null: none."""
    expect: Annotated[
        ServiceExpect, Field(title='ServiceExpect', validate_default=True)
    ] = {}
    """How a service must answer."""


class DutySpec(Document):
    """A task that runs long enough for its duty to be measured."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=80, min_length=1)]
    """Name of the task, 1 to 80 characters, unique among duty_specs."""
    stage: Name | None = None
    """Stage that runs; null: the default stage."""
    duty: Annotated[StrictFloat, Field(ge=0.0, le=1.0)]
    """Duty that the kit asks for, 0 to 1."""
    window_s: Annotated[StrictFloat, Field(ge=2.0, le=120.0)] = 4
    """How long the share is measured, in seconds, 2 to 120."""
    payload: dict[str, Any]
    """Payload of the task, as the module takes it."""
    datasets: list[StrictStr] = []
    """Ids of the datasets that are granted, keys of the datasets above."""
    mounts: dict[str, StrictStr] = {}
    """Portable path below the work directory for each dataset id."""


class Conformance(Document):
    """conformance.json beside a module's manifest: what the conformance kit pretends and runs. Written by a person; every key is optional."""

    model_config = ConfigDict(
        extra='allow',
    )
    datasets: Annotated[dict[str, FixtureDataset], Field(validate_default=True)] = {}
    """Datasets by id."""
    settings: dict[str, Any] = {}
    """The module's settings."""
    secrets: dict[str, StrictStr] = {}
    """Secrets by name; one that is not given is a random text."""
    tools: dict[str, StrictStr] = {}
    """Path of each tool, by id."""
    folders: dict[str, StrictStr] = {}
    """Folder that is read, by id; folders to write to start out empty."""
    images: Annotated[dict[str, FixtureImages], Field(validate_default=True)] = {}
    """Sets of signed images, by name."""
    node_classes: Annotated[list[FixtureNodeClass], Field(validate_default=True)] = []
    """Classes of nodes to ask goldens for; none: one for each declared platform."""
    params: list[dict[str, Any]] = []
    """Parameters that are checked twice and must be answered alike."""
    store: dict[str, Any] = {}
    """Documents of a pretended store, by <collection>/<key>."""
    files: dict[str, StrictStr] = {}
    """Text of pretended module files, by path."""
    ops: Annotated[list[FixtureOperation], Field(validate_default=True)] = []
    """Operations to apply twice."""
    runner_specs: Annotated[list[RunnerSpec], Field(validate_default=True)] = []
    """Tasks beside the goldens."""
    service_specs: Annotated[list[ServiceSpec], Field(validate_default=True)] = []
    """Requests to endpoint services."""
    duty_specs: Annotated[list[DutySpec], Field(validate_default=True)] = []
    """Tasks whose duty is measured."""


class GuardProtect(Document):
    """A program that owns the GPU. A process belongs to it where pid, process and arguments, as far as given, all fit; its children belong to it too."""

    model_config = ConfigDict(
        extra='forbid',
    )
    name: Annotated[StrictStr, Field(max_length=40, pattern='^[a-z0-9][a-z0-9_-]*$')]
    """A name of the owner's choice: small letters, digits, _ and -, 1 to 40 characters."""
    pid: Annotated[StrictInt | None, Field(ge=1)] = None
    """Its process id, 1 or more."""
    process: Annotated[StrictStr | None, Field(min_length=1)] = None
    """The name of its process, whole, at least one character."""
    arguments: Annotated[StrictStr | None, Field(min_length=1)] = None
    """A text that its command line contains, at least one character."""
    target: Annotated[StrictFloat, Field(gt=0.0, le=1.0)] = 0.05
    """The part of its speed that its owner lets it lose, above 0 to 1."""
    progress: GuardProgress | None = None
    """Where its progress is counted; null: nowhere."""
    level: Level1 | Level2 | None = None
    """What all jobs together may take beside it; null: nothing was certified."""
    levels: dict[
        Annotated[str, StringConstraints(min_length=1, strict=True)], Level1 | Level2
    ] = {}
    """Levels by module id or name of a workload, where they differ from level."""


class GuardLine(Document):
    """One line of `oarbank-agent-check guard --json`: how the machine stands, something that is said to a person, or the end. Which fields a line must have depends on its kind."""

    model_config = ConfigDict(
        extra='allow',
    )
    kind: Literal['state', 'said', 'end']
    """state (how everything stands, about every 2 s), said (a line for people, as it is said), end (the last line; a guard that was killed or could not go on writes none)."""
    t: Annotated[StrictFloat, Field(ge=0.0)]
    """Moment in Unix seconds, 0 or more."""
    gpu_jobs: Literal['never', 'when_no_gpu_protected', 'certified', 'always'] | None = (
        None
    )
    """Of a state: the owner's rule for GPU work."""
    programs: list[GuardLineProgram] | None = None
    """Of a state: the protected programs, each of the configuration once, in its order."""
    jobs: list[GuardLineJob] | None = None
    """Of a state: the entries for jobs and then for workloads, each of the configuration once, in its order."""
    text: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Of something said: one line for people, at least one character; its words may change any time."""
    exit: Annotated[StrictInt | None, Field(ge=0, le=3)] = None
    """Of the end: the exit code; 0 every job has its result, 1 one has not, 3 could not tell."""


class CertifiedModule(Document):
    """Whose work was measured; the certificate is void for any other."""

    model_config = ConfigDict(
        extra='allow',
    )
    id: Annotated[
        StrictStr, Field(max_length=128, pattern='^[a-z0-9]+(\\.[a-z0-9][a-z0-9-]*)+$')
    ]
    """The module's id."""
    version: Annotated[
        StrictStr,
        Field(
            pattern='^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$'
        ),
    ]
    """The module's version."""
    digest: Annotated[StrictStr, Field(pattern='^[0-9a-f]{64}$')]
    """SHA-256 over the files of the module's folder."""
    stage: Name | None
    """The stage that ran; null: the module lists none."""
    model: CertifiedModel | None
    """The model that the payload names; null: it names none."""


class WindowPair(Document):
    """Two windows; a coin chose which came first."""

    model_config = ConfigDict(
        extra='allow',
    )
    first: ProgressWindow
    """The first one."""
    second: ProgressWindow
    """The second one."""
    fault: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Why the pair says nothing; null: it counts."""


class ModuleManifest(Document):
    """oarbank-module.toml, read as a value: what a module is and needs. Written by a person; tables that are not listed here are kept."""

    model_config = ConfigDict(
        extra='allow',
    )
    manifest: Annotated[StrictInt, Field(ge=1, le=1)]
    """Major of the manifest, 1."""
    module: Annotated[Module, Field(title='Module')]
    """Who the module is."""
    requires: Annotated[ModuleRequires, Field(title='ModuleRequires')]
    """What the host must offer."""
    coordinator: Coordinator | None = None
    """The program that plans and judges; null: none."""
    runner: Runner
    """The program that does the work."""
    stages: Annotated[list[Stage], Field(validate_default=True)] = []
    """Kinds of tasks; none: one that is named by nobody."""
    sandbox: Annotated[Sandbox, Field(title='Sandbox', validate_default=True)] = {}
    """What the runner may reach."""
    results: Annotated[Results, Field(title='Results')]
    """What its results look like."""
    goldens: Goldens | None = None
    """Tasks whose result is known; null: none."""
    operations: Annotated[list[Operation], Field(validate_default=True)] = []
    """What an owner may ask the module for."""


class GuardConfig(Document):
    """What `oarbank-agent-check guard` protects and what it runs beside it; written as TOML. Paths are relative to the file. Closed at every level: a mistyped key would silently protect nothing."""

    model_config = ConfigDict(
        extra='forbid',
    )
    gpu_jobs: Literal['never', 'when_no_gpu_protected', 'certified', 'always'] = (
        'when_no_gpu_protected'
    )
    """What GPU work may run while a protected program uses the GPU: never (none, and none without one either), when_no_gpu_protected (none), certified (only what holds a duty, up to the program's level), always (all, unrestricted)."""
    protect: Annotated[list[GuardProtect], Field(validate_default=True)] = []
    """The protected programs."""
    job: Annotated[list[GuardJob], Field(validate_default=True)] = []
    """Jobs of modules. The entries run side by side; the jobs of one operation one after the other."""
    workload: Annotated[list[GuardWorkload], Field(validate_default=True)] = []
    """Long-running processes that share the GPU too."""


class TriedLevel(Document):
    """One level: what was measured, and what follows."""

    model_config = ConfigDict(
        extra='allow',
    )
    level: Annotated[StrictFloat, Field(gt=0.0, le=1.0)]
    """Part of the GPU's time, above 0 and at most 1."""
    verdict: Literal['pass', 'harms', 'close', 'undecided', 'void']
    """pass (less harm than the target), harms (more), close (too near to it to tell), undecided, void (nothing was measured)."""
    reason: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Why it is undecided or void; null: it is neither."""
    harm: StrictFloat | None
    """1 - progress a second with the work running / with it paused; negative: it was faster; null: no pair counted."""
    low: StrictFloat | None
    """Lower bound of the harm; null: none is known."""
    high: StrictFloat | None
    """Upper bound of the harm; null: none is known."""
    error: Annotated[StrictFloat, Field(gt=0.0, lt=1.0)]
    """At most so often is the upper bound too low, above 0 and below 1."""
    noise: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Standard deviation of the slowdown of a pair, as a part of the rate, 0 or more; null: too few pairs."""
    held: Annotated[StrictFloat | None, Field(ge=0.0)]
    """Mean share that the work took while it ran, 0 or more; null: no pair counted."""
    pairs: list[WindowPair]
    """Pairs of windows, one with the work paused and one with it running, in the order in which they were taken."""


class LevelCertificate(Document):
    """How much of the GPU's time a module may take beside a protected program without harming it more than its owner's target, with everything that was measured. It holds for the machine, the module and the model that it names, and for nothing else."""

    model_config = ConfigDict(
        extra='allow',
    )
    level: Annotated[StrictFloat | None, Field(gt=0.0, le=1.0)]
    """The certified part of the GPU's time, above 0 and at most 1; null: none was."""
    reason: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Why there is no level, or why the search ended before the resolution was reached; null: neither."""
    program: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Which protected program, in the owner's words; null: not said."""
    target: Annotated[StrictFloat, Field(gt=0.0, lt=1.0)]
    """The harm that its owner still bears: the lost part of its progress, above 0 and below 1."""
    error: Annotated[StrictFloat, Field(gt=0.0, lt=1.0)]
    """At most so often does such a search certify a level that harms more than the target, above 0 and below 1."""
    least_pairs: Annotated[StrictInt, Field(ge=1)]
    """Pairs of windows that a pass takes at least, 1 or more."""
    made: StrictFloat
    """When it was made, in Unix seconds."""
    took_s: Annotated[StrictFloat, Field(ge=0.0)]
    """How long the search took, in seconds, 0 or more."""
    seed: Annotated[StrictInt, Field(ge=0)]
    """Seed of the coins that ordered the windows, 0 or more."""
    measured: Annotated[MeasuredHow, Field(title='MeasuredHow')]
    """What was measured, and how."""
    host: Annotated[CertifiedHost, Field(title='CertifiedHost')]
    """The machine; the certificate is void on any other."""
    module: Annotated[CertifiedModule, Field(title='CertifiedModule')]
    """Whose work was measured; the certificate is void for any other."""
    levels: list[TriedLevel]
    """Every level that was measured, in the order in which they were."""


AnyContract = TypeAliasType(
    "AnyContract",
    Annotated[
        AgentJournal | Conformance | ConformanceReport | GpuDutyEvent | GpuSample | GuardConfig | GuardLine | LevelCertificate | ModuleManifest | ResultEnvelope | RunnerControl | RunnerDoctor | RunnerEvent | RunnerFailure | SpecEnvelope,
        Field(title='AnyContract'),
    ],
)
"""Every contract once; the models are generated from here."""

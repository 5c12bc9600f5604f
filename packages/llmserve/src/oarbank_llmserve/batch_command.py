"""`oarbank-llmserve batch`: a person's prompts through the same loop as an agent's job, without an agent.

It reads prompts, opens the model under the duty, and hands completions to the screen or a file. Ctrl-C ends it at any
moment, and what is completed by then is kept. No rule about jobs, models or duties is here.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from oarbank_llmserve import engines, ledger, prompts_text
from oarbank_llmserve.attempt import Attempt
from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import SHORT_NAME, Job, Refusal, backend_for
from oarbank_llmserve.model_digest import looks_of
from oarbank_llmserve.models import look_at
from oarbank_llmserve.outfile import NotOurs, OutFile
from oarbank_llmserve.payload import Bad, checked
from oarbank_llmserve.prompts_text import Prompts
from oarbank_llmserve.result import Spent
from oarbank_llmserve.screen import Screen, closing, live
from oarbank_llmserve.sink import Completion
from oarbank_llmserve.units import Units
from oarbank_llmserve.usage import INTERRUPTED, UsageError
from oarbank_sdk.canonical import sha256
from oarbank_sdk.duty import Duty
from oarbank_sdk.whole_file import read_standard_input, read_whole

SETTINGS = ("max_tokens", "stop", "temperature", "top_p", "top_k", "min_p", "seed", "longest_ms", "memory_gb")
FLAGS = {name: f"--{name.replace('_', '-')}" for name in SETTINGS}


def run(args: argparse.Namespace) -> int:
    """The command; the exit status. Raises `UsageError`, KeyboardInterrupt before the first unit, OSError of stdout."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a console may not know every character
    job, model = _job(args)
    _check_place("--events", args.events)
    _check_place("--out", args.out)
    try:
        backend = engines.load(job.backend)
    except engines.NoBackend as missing:
        raise UsageError(str(missing), 3) from None
    if args.out is None:
        return _Command(args, job, model, backend, None).run()
    try:
        with OutFile(Path(args.out), _key(job, model, backend), [prompt.id for prompt in job.prompts]) as out:
            return _Command(args, job, model, backend, out).run()
    except NotOurs as fault:
        raise UsageError(str(fault)) from None
    except OSError as fault:
        raise UsageError(f"--out: must be a file that can be written; {fault.strerror}", 3) from None


def _key(job: Job, model: Path | None, backend: engines.Backend) -> str:
    """What decides the texts. A person's model is known by its place, size and time: no command waits for a digest."""
    looks = None if model is None else sha256([[str(part) for part in file] for file in looks_of(model)])
    return ledger.key(job, job.backend, looks, {**backend.versions(), SHORT_NAME: job.module_version})


class _Command:
    """One run of the command, once everything that was typed holds."""

    def __init__(
        self, args: argparse.Namespace, job: Job, model: Path | None, backend: engines.Backend, out: OutFile | None
    ) -> None:
        self._args = args
        self._job = job
        self._model = model
        self._backend = backend
        self._out = out
        self._screen = Screen(len(job.prompts), job.backend, backend.device(), to_file=out is not None)
        self._attempt = Attempt(job, out)

    def put(self, completion: Completion) -> None:
        """A completion of the loop; `_progress` comes when it is counted."""
        self._interrupts.hold()
        self._attempt.put(completion)

    def _progress(self, prompts: int, tokens: int) -> None:
        self._interrupts.let_go()
        self._screen.progress(prompts + self._attempt.resumed, tokens)

    def run(self) -> int:
        """Load, complete, close; the exit status."""
        self._attempt.begin(_Shown(self._screen, self._out))
        with Duty(None, events=self._args.events, device=self._backend.device()) as duty:  # its end writes a report
            duty.set(self._args.duty)
            if not self._attempt.left:
                return self._end(None, duty, Spent(0.0), "")
            with _Interrupts(duty) as self._interrupts:
                engine = self._open()
                try:
                    return self._batch(self._loop(engine), duty)
                finally:
                    engine.close()

    def _loop(self, engine: engines.Engine) -> Batch:
        person = _Person(self._args.threads)
        return Batch(self._attempt.left_job(), engine, self._interrupts, person, progress=self._progress)

    def _open(self) -> engines.Engine:
        units = Units(self._interrupts, _Person(self._args.threads))
        options = engines.Options(self._model, None, units.going, self._job.memory_gb)
        try:
            return units.run("load", self._backend.open_engine, options)
        except engines.OutOfMemory as fault:
            raise UsageError(f"oom: {fault}", 1) from None
        except (engines.BadModel, engines.PromptFault) as fault:
            raise UsageError(f"--{fault}") from None

    def _batch(self, batch: Batch, duty: Duty) -> int:
        began_s, idle_s, ended = time.monotonic(), duty.idle_s, ""

        def spent() -> Spent:
            return Spent(time.monotonic() - began_s, duty.idle_s - idle_s)

        self._screen.figures = lambda tokens: live(tokens, spent(), batch.totals.busy_s)
        try:
            batch.prepare()
            began_s, idle_s = time.monotonic(), duty.idle_s
            batch.run(self)
        except KeyboardInterrupt:
            ended = "interrupted"
        except engines.OutOfMemory as fault:
            raise UsageError(f"oom: {fault}", 1) from None
        finally:
            self._screen.close()
        self._interrupts.hold()  # what is left is a moment's work, and all of it is done
        return self._end(batch, duty, spent(), ended)

    def _end(self, batch: Batch | None, duty: Duty, spent: Spent, ended: str) -> int:
        self._screen.close()
        if ended:
            print(self._interrupted(batch), file=sys.stderr)
        elif self._out is not None:
            self._out.finish()
            print(f"{self._out.path}: {self._attempt.counts.prompts} completions", file=sys.stderr)
        if batch is not None:
            batch.totals.tokens += batch.unfinished_tokens or 0  # they were made, and took their time
            print(closing(batch.totals, spent, duty.duty), file=sys.stderr)
        return INTERRUPTED if ended else int(self._attempt.counts.failed > 0)

    def _interrupted(self, batch: Batch | None) -> str:
        counts = self._attempt.counts
        done = counts.prompts - counts.failed
        line = f"Ctrl-C: {done} of {len(self._job.prompts)} prompts were completed"
        if batch is not None and batch.unfinished:
            line += f"; {batch.unfinished} were not finished, and their {batch.unfinished_tokens} tokens are left out"
        if self._out is None:
            return f"{line}. To be able to go on another time, give --out FILE"
        return f"{line}. They are kept in {self._out.unfinished}: the same command again goes on with the others"


def _check_place(flag: str, name: str | None) -> None:
    if name is None:
        return
    try:
        is_folder, has_folder = Path(name).is_dir(), Path(name).absolute().parent.is_dir()
    except OSError as fault:  # a name of thousands of characters, a folder that nobody may look into
        raise UsageError(f"{flag}: must be a file that can be looked at; {fault.strerror}. Name another") from None
    if is_folder:
        raise UsageError(f"{flag}: must be a file; found a folder. Name a file in it: {Path(name, 'FILE')}")
    if not has_folder:
        raise UsageError(f"{flag}: must lie in a folder that is there; found {name}. Make the folder first")


def _job(args: argparse.Namespace) -> tuple[Job, Path | None]:
    """The job, with the backend chosen, and the model's place."""
    prompts = _prompts(args.prompts, chat=args.chat)
    model = None if args.model is None else Path(args.model)
    kind = _kind(model, args.backend)
    backend = "stub"
    if kind is not None:
        fits = backend_for(args.backend, kind)
        if isinstance(fits, Refusal):
            raise UsageError(f"--{fits.detail}")
        backend = fits
    settings = {name: value for name in SETTINGS if (value := getattr(args, name)) is not None}
    try:
        # A person's model may lie anywhere, so the payload's rule for names does not apply.
        job = checked("batch", {**settings, "prompts": prompts.values, "backend": backend, "model": "given"})
    except Bad as bad:
        raise UsageError(f"{_typed(bad.where, args.prompts, prompts)}: {bad.what}") from None
    return job, None if backend == "stub" else model


def _typed(where: str, source: str, prompts: Prompts) -> str:
    """Where in what a person typed or wrote: a flag, or a line of the file."""
    key, _, rest = where.removeprefix("payload: /").partition("/")
    if key != "prompts":
        return FLAGS.get(key, key)
    number, _, inner = rest.partition("/")
    name = "stdin" if source == "-" else source
    if not number.isdigit():
        return name
    return f"{name}: line {prompts.lines[int(number)]}{f': /{inner}' if inner and inner != 'prompt' else ''}"


def _kind(model: Path | None, backend: str) -> str | None:
    if backend == "stub":
        if model is not None:
            raise UsageError(
                f"--model: must be left out with --backend stub, which opens none; found {model}. Leave one of them out"
            )
        return None
    if model is None:
        raise UsageError(
            f"--model: must be given for the backend {backend}; found none. "
            "Name a .gguf file or an MLX model's folder, or try --backend stub, which needs none"
        )
    try:
        found = look_at(model) if model.exists() else None
    except OSError as fault:
        raise UsageError(f"--model: must be a model that can be looked at; {fault.strerror}. Name another") from None
    if found is None:
        raise UsageError(
            f"--model: must be a model that is there; found nothing at {model}. "
            "Name a .gguf file or an MLX model's folder of yours: none comes with this program"
        )
    if isinstance(found, Refusal):
        raise UsageError(f"--{found.detail}")
    return found.kind


def _prompts(source: str, *, chat: bool) -> Prompts:
    name = "stdin" if source == "-" else source
    try:
        data = read_standard_input() if source == "-" else read_whole(source)
    except OSError as fault:
        raise UsageError(
            f"{name}: must be a file that can be read; {fault.strerror}. Name a text file, or - for stdin"
        ) from None
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"{name}: must be UTF-8 text; byte {fault.start} is not (0x{data[fault.start]:02x}). "
            "Save it as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8"
        ) from None
    try:
        prompts = prompts_text.read(text, name, chat=chat)
    except prompts_text.BadLine as bad:
        raise UsageError(f"{name}: {bad}") from None
    if not prompts.values:
        raise UsageError(f"{name}: must hold a prompt a line; found none. Write one prompt on each line")
    return prompts


class _Interrupts:
    """Ctrl-C where it may come: in an idle, and between two units.

    Not inside a unit, where a library may be calling us back and no exception crosses it; and not between keeping a
    prompt and counting it. It is a governor around the governor, so that both know the same units.
    """

    def __init__(self, duty: Duty) -> None:
        self._duty = duty
        self._came = False
        self._held = False

    @property
    def duty(self) -> float | None:
        """The duty in force."""
        return self._duty.duty

    def scale(self, label: str | None = None) -> float:
        """As the governor's."""
        return self._duty.scale(label)

    @contextmanager
    def unit(self, label: str | None = None) -> Generator[None]:
        """The governor's unit; its idle may be interrupted, its work is not."""
        try:
            with self._duty.unit(label):
                self.hold()
                yield
        finally:
            self._held = False
        self.let_go()

    def hold(self) -> None:
        """From here on a Ctrl-C waits for `let_go`."""
        self._held = True

    def let_go(self) -> None:
        """Raise KeyboardInterrupt for one that came."""
        self._held = False
        if self._came:
            raise KeyboardInterrupt

    def __enter__(self) -> _Interrupts:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *raised: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        if not self._held:
            raise KeyboardInterrupt


class _Shown:
    """Completions of this command and of the one it goes on with: to the screen, and to the file's end."""

    def __init__(self, screen: Screen, out: OutFile | None) -> None:
        self._screen = screen
        self._out = out

    def put(self, completion: Completion) -> None:
        """Show it."""
        if self._out is not None:
            self._out.take(completion)
        self._screen.put(completion)


class _Person:
    """No control document: whoever typed the command decides, once."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads

    def safe_point(self) -> None:
        """Nothing to do."""

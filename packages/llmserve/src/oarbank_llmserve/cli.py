"""`oarbank-llmserve batch|doctor`: for people. Calls in, an exit status out; arguments.py says what may be typed.

Exit status: 0 all prompts completed, 1 some were not, 2 wrong use, 3 the backend does not load here or the output
cannot be written, 130 ended by Ctrl-C (what is printed stays whole). Whatever goes wrong is one line on stderr. No rule
about jobs, models or duties is here.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from oarbank_llmserve import arguments, engines
from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import Job, Refusal, backend_for, read_payload
from oarbank_llmserve.models import look_at
from oarbank_llmserve.result import Spent
from oarbank_llmserve.screen import CannotPrint, Screen, closing
from oarbank_sdk.duty import Duty

INTERRUPTED = 130  # as shells report SIGINT


class UsageError(Exception):
    """The one line that says what is wrong, and the exit status."""

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status


def main(argv: Sequence[str] | None = None) -> int:
    """The command line's entry point; returns the exit status."""
    try:
        try:
            status = _command(arguments.parser().parse_args(argv))
        except SystemExit as ended:  # --help, --version or wrong use
            status = int(ended.code or 0)
        sys.stdout.flush()  # here, where a full disk still gets an answer
        return status
    except UsageError as wrong:
        return _told(str(wrong), wrong.status)
    except BrokenPipeError:  # `| head` has seen enough
        return _told("", 1)
    except CannotPrint as fault:
        return _told(str(fault), 3)
    except OSError as fault:
        return _told(f"stdout: must take what is printed; {fault.strerror}", 3)
    except KeyboardInterrupt:
        return _told("Ctrl-C: nothing was completed yet", INTERRUPTED)


def _told(line: str, status: int) -> int:
    """Say `line`, and leave nothing in a stream that takes nothing: the interpreter would fail on it at its end."""
    with contextlib.suppress(OSError):
        if line:
            print(line, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return status


def _command(args: argparse.Namespace) -> int:
    if args.command == "doctor":
        from oarbank_llmserve import doctor

        return doctor.main(as_json=args.json)
    return _batch(args)


def _batch(args: argparse.Namespace) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a console may not know every character
    job, model = _job(args)
    _check_events(args.events)
    try:
        backend = engines.load(job.backend)
    except engines.NoBackend as missing:
        raise UsageError(str(missing), 3) from None
    with Duty(None, events=args.events, device=backend.device()) as duty:  # its end writes the last report
        duty.set(args.duty)
        engine = _open(backend, model, duty)
        try:
            screen = Screen(len(job.prompts), job.backend, backend.device())
            return _run(Batch(job, engine, duty, _Person(args.threads), progress=screen.progress), screen, duty)
        finally:
            engine.close()


def _check_events(events: str | None) -> None:
    if events is None:
        return
    if Path(events).is_dir():
        raise UsageError(f"--events: must be a file; found a folder. Name a file in it: {Path(events, 'e.ndjson')}")
    if not Path(events).absolute().parent.is_dir():
        raise UsageError(f"--events: must lie in a folder that is there; found {events}. Make the folder first")


def _run(batch: Batch, screen: Screen, duty: Duty) -> int:
    began_s, idle_s, totals = time.monotonic(), 0.0, batch.totals
    try:
        batch.prepare()
        began_s, idle_s = time.monotonic(), duty.idle_s
        batch.run(screen)
        ended = "" if not totals.failed else "some"
    except KeyboardInterrupt:
        ended = "interrupted"
    except engines.OutOfMemory as fault:
        raise UsageError(f"oom: {fault}", 1) from None
    finally:
        screen.close()
    spent = Spent(time.monotonic() - began_s, duty.idle_s - idle_s)
    if ended == "interrupted":
        print(_interrupted(batch), file=sys.stderr)
        totals.tokens += batch.unfinished_tokens or 0  # they were made, and took their time
    print(closing(totals, spent, duty.duty), file=sys.stderr)
    return {"": 0, "some": 1, "interrupted": INTERRUPTED}[ended]


def _interrupted(batch: Batch) -> str:
    done, tokens = batch.totals.prompts, batch.unfinished_tokens
    line = f"Ctrl-C: {done} of {batch.prompts} prompts were completed, as printed"
    if tokens is None:
        return line
    return f"{line}; prompt {done + 1} was not finished, and its {tokens} tokens are left out"


def _job(args: argparse.Namespace) -> tuple[Job, Path | None]:
    """The job, with the backend chosen, and the model's place."""
    prompts = _prompts(args.prompts)
    model = None if args.model is None else Path(args.model)
    kind = _kind(model, args.backend)
    if kind is None:
        backend = "stub"
    else:
        fits = backend_for(args.backend, kind)
        if isinstance(fits, Refusal):
            raise UsageError(f"--{fits.detail}")
        backend = fits
    payload = {"prompts": prompts, "max_tokens": args.max_tokens, "backend": backend, "stop": args.stop}
    # A person's model may lie anywhere, so the payload's rule for names does not apply.
    job = read_payload("batch", {**payload, "model": "given"})
    if isinstance(job, Refusal):
        where, _, what = job.detail.removeprefix("payload: /").partition(": ")
        flag = "--stop" if where.partition("/")[0] == "stop" else f"{args.prompts}: /{where}"
        raise UsageError(f"{flag}: {what}")
    return job, None if backend == "stub" else model


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
            "Name a .gguf file, or try --backend stub, which needs none"
        )
    if not model.exists():
        raise UsageError(
            f"--model: must be a file that is there; found nothing at {model}. "
            "Name a .gguf file of yours: none comes with this program"
        )
    found = look_at(model)
    if isinstance(found, Refusal):
        raise UsageError(f"--{found.detail}")
    return found.kind


def _prompts(source: str) -> list[str]:
    name = "stdin" if source == "-" else source
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
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
    prompts = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if not prompts:
        raise UsageError(f"{name}: must hold a prompt a line; found none. Write one prompt on each line")
    return prompts


def _open(backend: engines.Backend, model: Path | None, duty: Duty) -> engines.Engine:
    try:
        with duty.unit("load"), _InterruptLater() as interrupt:
            return backend.open_engine(engines.Options(model, going=interrupt.going))
    except engines.LoadStopped:
        raise KeyboardInterrupt from None
    except engines.OutOfMemory as fault:
        raise UsageError(f"oom: {fault}", 1) from None
    except engines.BadModel as fault:
        raise UsageError(f"--{fault}") from None


class _InterruptLater:
    """Ctrl-C while a model loads ends the load between two steps: an exception cannot cross the library's callbacks."""

    def __init__(self) -> None:
        self._came = False

    def going(self) -> bool:
        """Whether the load goes on."""
        return not self._came

    def __enter__(self) -> _InterruptLater:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *raised: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self._came:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._came = True


class _Person:
    """No control document: whoever typed the command decides, once."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads

    def safe_point(self) -> None:
        """Nothing to do."""

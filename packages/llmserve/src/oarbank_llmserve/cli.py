"""`oarbank-llmserve batch|doctor`: for people. Arguments in, calls, an exit status out.

Exit status: 0 all prompts completed, 1 some were not, 2 wrong use, 3 the backend does not load here, 130 ended by
Ctrl-C (what is printed stays whole). Wrong input is one line on stderr. No rule about jobs, models or duties is here.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from oarbank_llmserve import engines
from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import BACKENDS, Job, Refusal, backend_for, read_payload
from oarbank_llmserve.models import kind_of
from oarbank_llmserve.result import Spent
from oarbank_llmserve.screen import Screen, closing
from oarbank_sdk.duty import Duty

INTERRUPTED = 130  # as shells report SIGINT


class UsageError(Exception):
    """The one line that says what is wrong, and the exit status."""

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status


def main(argv: Sequence[str] | None = None) -> int:
    """The command line's entry point; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "doctor":
            from oarbank_llmserve import doctor

            return doctor.main(as_json=args.json)
        return _batch(args)
    except UsageError as wrong:
        print(wrong, file=sys.stderr)
        return wrong.status
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("Ctrl-C: nothing was completed yet", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="oarbank-llmserve", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    batch = commands.add_parser("batch", help="complete each line of a file")
    batch.add_argument("prompts", help="a UTF-8 text file, one prompt a line (empty lines are left out); - for stdin")
    batch.add_argument("--model", metavar="FILE.gguf", help="the model; not needed for the backend stub")
    batch.add_argument("--duty", type=_duty, metavar="D", help="share of the time the device is kept busy, up to 1")
    batch.add_argument("--backend", choices=BACKENDS, default="auto", help="default: by what the model is")
    batch.add_argument("--max-tokens", type=int, default=256, metavar="N", help="new tokens for each prompt at most")
    batch.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end a completion here; may repeat")
    batch.add_argument("--threads", type=_threads, metavar="N", help="CPU threads (default: half of the CPUs)")
    batch.add_argument("--events", metavar="FILE", help="append the duty's reports to this file")
    doctor = commands.add_parser("doctor", help="which backends load here")
    doctor.add_argument("--json", action="store_true", help="one line of JSON, as agents read it")
    return parser


def _duty(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and up to 1; found {text[:80]}")
    return value


def _threads(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1024; found {text[:80]}")
    return int(text)


def _batch(args: argparse.Namespace) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a console may not know every character
    job, model = _job(args)
    if args.events is not None and not Path(args.events).absolute().parent.is_dir():
        raise UsageError(f"--events: must lie in a folder that is there; found {args.events}")
    try:
        backend = engines.load(job.backend)
    except engines.NoBackend as missing:
        raise UsageError(str(missing), 3) from None
    duty = Duty(None, events=args.events, device=backend.device())
    duty.set(args.duty)
    engine = _open(backend, model, duty)
    try:
        screen = Screen(len(job.prompts), job.backend, backend.device())
        return _run(Batch(job, engine, duty, _Person(args.threads), progress=screen.progress), screen, duty)
    finally:
        engine.close()


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
        print(f"Ctrl-C: {totals.prompts} of {batch.prompts} prompts were completed, as printed", file=sys.stderr)
    else:
        duty.close()
    print(closing(totals, spent, duty.duty), file=sys.stderr)
    return {"": 0, "some": 1, "interrupted": INTERRUPTED}[ended]


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
        flag = {"max_tokens": "--max-tokens", "stop": "--stop"}.get(where.partition("/")[0])
        raise UsageError(f"{flag or f'{args.prompts}: /{where}'}: {what}")
    return job, None if backend == "stub" else model


def _kind(model: Path | None, backend: str) -> str | None:
    if backend == "stub":
        return None
    if model is None:
        raise UsageError(f"--model: must be given for the backend {backend}. --backend stub needs none.")
    if not model.exists():
        raise UsageError(f"--model: must be a file that is there; found nothing at {model}")
    return kind_of(model)


def _prompts(source: str) -> list[str]:
    name = "stdin" if source == "-" else source
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as fault:
        raise UsageError(f"{name}: must be a file that can be read; {fault.strerror}") from None
    except UnicodeDecodeError as fault:
        raise UsageError(f"{name}: must be UTF-8 text; byte {fault.start} is not") from None
    prompts = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if not prompts:
        raise UsageError(f"{name}: must hold a prompt a line; found none")
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

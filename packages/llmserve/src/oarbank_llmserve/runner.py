"""The runner: one spec in, result.json or failure.json out, steered by control.json meanwhile.

The order matters. SIGTERM is caught first, because the agent sends it right behind a stop; then Control, so that no
nudge is lost; then the governor, the load (inside a unit), the first phase, the batch; result.json last and at once.
A refusal writes failure.json before the exit status that it explains. Nothing here decides what a job may hold.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oarbank_llmserve import engines
from oarbank_llmserve.arguments import OneLineParser
from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import Job, Refusal, backend_for, bad_spec, no_backend, no_model, read_spec
from oarbank_llmserve.models import find_model
from oarbank_llmserve.progress import ProgressEvents
from oarbank_llmserve.result import COMPLETIONS, Spent, envelope, payload
from oarbank_llmserve.sink import Completion, JsonlSink
from oarbank_sdk import strictjson
from oarbank_sdk.control import Control, Stopped, replace_text
from oarbank_sdk.duty import Duty


class Refused(Exception):
    """Inside this file: the attempt ends with this refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def main(argv: Sequence[str] | None = None) -> int:
    """`run` or `doctor`; the exit status."""
    parser = OneLineParser(prog="llmserve_runner", description="The runner of the module llmserve.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="do one task")
    for name in ("spec", "workdir", "out"):
        run_parser.add_argument(f"--{name}", required=True)
    run_parser.add_argument("--events")
    doctor_parser = commands.add_parser("doctor", help="say what loads here")
    doctor_parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    if args.command == "doctor":
        from oarbank_llmserve import doctor

        return doctor.main(as_json=args.json)
    if not os.path.isdir(args.workdir):
        print(f"--workdir: must be a folder; found {args.workdir}", file=sys.stderr)
        return 2
    return run(args.spec, args.workdir, args.out, args.events)


def run(spec: str, workdir: str, out: str, events: str | None) -> int:
    """Do the task in `spec`; the exit status (0, 1, 2, 3 or 75)."""
    told = _Terminated()
    ctl = Control(workdir)
    told.passes_on_to(ctl)
    task = _Task(ctl, Path(workdir), events)
    try:
        task.run(_read(spec), out)
    except Stopped:
        return ctl.acknowledge_stop()
    except Refused as refused:
        return _fail(workdir, refused.refusal)
    except (engines.OutOfMemory, MemoryError) as fault:
        return _fail(workdir, Refusal("oom", 1, str(fault) or "out of memory"))
    except OSError as fault:
        return _fail(workdir, Refusal("cannot_write", 3, f"{fault.filename}: {fault.strerror}", "host"))
    finally:
        # The answer is written. A SIGTERM that comes late must not kill the exit that goes with it: a handler in
        # Python is gone before the process is, an ignored signal stays ignored.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        task.close()  # after the answer, too: a large model takes its time to go
    return 0


class _Terminated:
    """SIGTERM is a stop that came without its document: marked, and found at the next safe point."""

    def __init__(self) -> None:
        self._came = False
        self._ctl: Control | None = None
        signal.signal(signal.SIGTERM, self._mark)

    def passes_on_to(self, ctl: Control) -> None:
        """From here on `ctl` knows; also of a signal that came before it was made."""
        self._ctl = ctl
        if self._came:
            ctl.stop = True

    def _mark(self, *_: object) -> None:
        self._came = True
        if self._ctl is not None:
            self._ctl.stop = True
            self._ctl.wake()


class _Task:
    """One attempt at one job."""

    def __init__(self, ctl: Control, workdir: Path, events: str | None) -> None:
        self._ctl = ctl
        self._workdir = workdir
        self._events = events
        self._engine: engines.Engine | None = None

    def run(self, spec: Any, out: str) -> None:
        """From the spec to the result. Raises `Refused`, `Stopped`, `OutOfMemory`."""
        job = read_spec(spec)
        if isinstance(job, Refusal):
            raise Refused(job)
        name, model = _place(job)
        backend = _load_backend(name)
        self._ctl.check()
        duty = Duty(self._ctl, events=self._events, device=backend.device())
        options = engines.Options(model, _granted_threads(spec), self._going)
        with duty.unit("load"):
            self._engine = self._open(backend, options)
        result = self._batch(job, self._engine, duty, name, backend)
        duty.close()
        replace_text(out, json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Give the model's memory back."""
        if self._engine is not None:
            self._engine.close()

    def _open(self, backend: engines.Backend, options: engines.Options) -> engines.Engine:
        try:
            return backend.open_engine(options)
        except engines.LoadStopped:
            self._ctl.check()
            raise
        except engines.BadModel as fault:
            raise Refused(no_model(str(fault))) from None

    def _batch(
        self, job: Job, engine: engines.Engine, duty: Duty, name: str, backend: engines.Backend
    ) -> dict[str, Any]:
        ctl = self._ctl
        batch = Batch(job, engine, duty, ctl, progress=ProgressEvents(self._events, len(job.prompts)))
        batch.prepare()
        ctl.phase(job.stage)
        began_s, idle_s, paused_s = time.monotonic(), duty.idle_s, ctl.paused_s
        kept = _Kept(self._workdir / COMPLETIONS, keep=job.stage == "selftest")
        with kept.sink:
            totals = batch.run(kept)
            kept.sink.finish()
        spent = Spent(time.monotonic() - began_s, duty.idle_s - idle_s, ctl.paused_s - paused_s)
        if totals.failed == totals.prompts:
            raise Refused(Refusal("all_failed", 1, f"no prompt was completed; the first: {totals.first_error}"))
        effective = {"backend": name, "device": backend.device()}
        if job.model is not None and name != "stub":
            effective["model"] = job.model
        fields = payload(totals, spent, kept.sink.digest.hexdigest(), kept.texts)
        return envelope(job, fields, effective, backend.versions())

    def _going(self) -> bool:
        try:
            self._ctl.check()
        except Stopped:
            return False
        return True


class _Kept:
    """The file, and the texts beside it where the result compares them."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self.sink = JsonlSink(path)
        self.texts: list[str] | None = [] if keep else None

    def put(self, completion: Completion) -> None:
        self.sink.put(completion)
        if self.texts is not None:
            self.texts.append(completion.text)


def _read(spec: str) -> Any:
    try:
        with open(spec, "rb") as file:
            return strictjson.loads(file.read())
    except OSError as fault:
        raise Refused(bad_spec(f"spec: must be a file that can be read; {fault.strerror}")) from None
    except strictjson.StrictJSONError as fault:
        raise Refused(bad_spec(f"spec: {fault}")) from None


def _place(job: Job) -> tuple[str, Path | None]:
    """The backend, and the model it opens. A backend that was named and is missing is said before a missing model."""
    if job.backend == "stub":
        return "stub", None
    if job.backend != "auto":
        _load_backend(job.backend)
    found = find_model(os.environ.get("OARBANK_MODULE_DATA"), job.model or "")
    if isinstance(found, Refusal):
        raise Refused(found)
    name = backend_for(job.backend, found.kind)
    if isinstance(name, Refusal):
        raise Refused(name)
    return name, found.path


def _load_backend(name: str) -> engines.Backend:
    try:
        return engines.load(name)
    except engines.NoBackend as fault:
        raise Refused(no_backend(str(fault))) from None


def _granted_threads(spec: dict[str, Any]) -> int | None:
    """The CPUs that the agent granted; None when it says nothing usable."""
    resources = spec.get("resources")
    cpu = resources.get("cpu") if isinstance(resources, dict) else None
    if isinstance(cpu, bool) or not isinstance(cpu, (int, float)):
        return None
    return max(int(cpu), 1)


def _fail(workdir: str, refusal: Refusal) -> int:
    """Write failure.json, then hand back the exit status that it explains."""
    failure: dict[str, Any] = {"reason": refusal.reason, "detail": refusal.detail[:1000]}
    if refusal.fault is not None:
        failure["fault"] = refusal.fault
    print(f"{refusal.reason}: {refusal.detail}", file=sys.stderr)
    replace_text(os.path.join(workdir, "failure.json"), json.dumps(failure) + "\n")
    return refusal.exit

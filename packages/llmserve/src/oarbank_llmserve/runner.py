"""The runner: one spec in, result.json or failure.json out, steered by control.json meanwhile.

The order matters. SIGTERM is caught first, because the agent sends it right behind a stop; then Control, so that no
nudge is lost; then the ledger of what earlier attempts finished, the governor, the load (inside a unit), the first
phase, the batch; result.json last and at once, and then the ledger goes.
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

from oarbank_llmserve import engines, ledger
from oarbank_llmserve.attempt import Attempt
from oarbank_llmserve.batch import Batch, Totals
from oarbank_llmserve.job import SHORT_NAME, Job, Refusal, backend_for, bad_spec, no_backend, no_model
from oarbank_llmserve.ledger import Ledger
from oarbank_llmserve.limits import bounded, granted_threads
from oarbank_llmserve.model_digest import model_digest
from oarbank_llmserve.models import find_model
from oarbank_llmserve.payload import read_spec
from oarbank_llmserve.progress import ProgressEvents
from oarbank_llmserve.result import COMPLETIONS, Spent, envelope, payload
from oarbank_llmserve.sink import JsonlSink
from oarbank_llmserve.units import Units
from oarbank_sdk import strictjson
from oarbank_sdk.control import Control, Stopped, replace_text
from oarbank_sdk.duty import Duty
from oarbank_sdk.oneline import OneLineParser


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
        self._data = os.environ.get("OARBANK_MODULE_DATA") or None
        self._engine: engines.Engine | None = None
        self._ledger: Ledger | None = None

    def run(self, spec: Any, out: str) -> None:
        """From the spec to the result. Raises `Refused`, `Stopped`, `OutOfMemory`."""
        job = _bounded(spec)
        name, model = _place(job, self._data)
        backend = _load_backend(name)
        self._ctl.check()
        digest = None if model is None else self._digest(model)
        self._ledger = self._open_ledger(job, name, digest, backend.versions())
        duty = Duty(self._ctl, events=self._events, device=backend.device())
        attempt = Attempt(job, self._ledger)
        if attempt.left:
            self._engine = self._open(backend, job, model, granted_threads(spec.get("resources")), duty)
        fields = self._batch(attempt, duty)
        duty.close()
        effective = {"backend": name, "device": backend.device()}
        if model is not None:
            effective["model"] = model.name
        result = envelope(job, fields, effective, backend.versions(), digest)
        replace_text(out, json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")
        if self._ledger is not None:
            self._ledger.remove()

    def close(self) -> None:
        """Give the model's memory back; the ledger of an unfinished job stays."""
        if self._engine is not None:
            self._engine.close()
        if self._ledger is not None:
            self._ledger.close()

    def _digest(self, model: Path) -> str:
        try:
            return model_digest(model, self._data, self._ctl.safe_point)
        except OSError as fault:
            raise Refused(no_model(f"model {model.name}: must be readable; {fault.strerror}")) from None

    def _open_ledger(self, job: Job, backend: str, model_sha256: str | None, versions: dict[str, str]) -> Ledger | None:
        """None in the self-test, which is measured and compared as one run, and without a data directory."""
        if self._data is None or job.stage == "selftest":
            return None
        folder = Path(self._data, ledger.FOLDER)
        tools = {**versions, SHORT_NAME: job.module_version}
        path = folder / f"{ledger.key(job, backend, model_sha256, tools)}.jsonl"
        ledger.clear_old(folder, time.time(), [path])
        return Ledger(path, len(job.prompts))

    def _open(
        self, backend: engines.Backend, job: Job, model: Path | None, threads: int | None, duty: Duty
    ) -> engines.Engine:
        units = Units(duty, self._ctl, longest_s=job.longest_s)
        options = engines.Options(model, threads, units.going, job.memory_gb)
        try:
            return units.run("load", backend.open_engine, options)
        except (engines.BadModel, engines.PromptFault) as fault:
            raise Refused(no_model(str(fault))) from None

    def _batch(self, attempt: Attempt, duty: Duty) -> dict[str, Any]:
        ctl, job = self._ctl, attempt.job
        progress = ProgressEvents(self._events, len(job.prompts))
        batch = None
        if self._engine is not None:
            batch = Batch(
                attempt.left_job(), self._engine, duty, ctl,
                progress=lambda prompts, tokens: progress(prompts + attempt.resumed, tokens),
            )  # fmt: skip
            batch.prepare()
        ctl.phase(job.stage)
        began_s, idle_s, paused_s = time.monotonic(), duty.idle_s, ctl.paused_s
        with JsonlSink(self._workdir / COMPLETIONS, [prompt.id for prompt in job.prompts]) as sink:
            attempt.begin(sink)
            own = Totals() if batch is None else batch.run(attempt)
            sink.finish()
        spent = Spent(time.monotonic() - began_s, duty.idle_s - idle_s, ctl.paused_s - paused_s)
        if attempt.counts.failed == attempt.counts.prompts:
            raise Refused(Refusal("all_failed", 1, f"no prompt was completed; the first: {own.first_error}"))
        digest = sink.digest.hexdigest()
        return payload(attempt.counts, own, spent, digest, attempt.in_order(), attempt.resumed)


def _read(spec: str) -> Any:
    try:
        with open(spec, "rb") as file:
            return strictjson.loads(file.read())
    except OSError as fault:
        raise Refused(bad_spec(f"spec: must be a file that can be read; {fault.strerror}")) from None
    except strictjson.StrictJSONError as fault:
        raise Refused(bad_spec(f"spec: {fault}")) from None


def _bounded(spec: Any) -> Job:
    """The job, within the agent's grant and the owner's settings."""
    job = read_spec(spec)
    if not isinstance(job, Refusal):
        job = bounded(job, spec.get("resources"), _settings())
    if isinstance(job, Refusal):
        raise Refused(job)
    return job


def _settings() -> Any:
    """The owner's settings; an absent file says nothing."""
    path = os.environ.get("OARBANK_SETTINGS_FILE")
    if not path or not os.path.exists(path):
        return {}
    try:
        with open(path, "rb") as file:
            return strictjson.loads(file.read())
    except (OSError, strictjson.StrictJSONError) as fault:
        raise Refused(Refusal("bad_settings", 3, f"settings: {fault}", "host")) from None


def _place(job: Job, data: str | None) -> tuple[str, Path | None]:
    """The backend, and the model it opens. A backend that was named and is missing is said before a missing model."""
    if job.backend == "stub":
        return "stub", None
    if job.backend != "auto":
        _load_backend(job.backend)
    found = find_model(data, job.model or "")
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


def _fail(workdir: str, refusal: Refusal) -> int:
    """Write failure.json, then hand back the exit status that it explains."""
    failure: dict[str, Any] = {"reason": refusal.reason, "detail": refusal.detail[:1000]}
    if refusal.fault is not None:
        failure["fault"] = refusal.fault
    print(f"{refusal.reason}: {refusal.detail}", file=sys.stderr)
    replace_text(os.path.join(workdir, "failure.json"), json.dumps(failure) + "\n")
    return refusal.exit

"""The coordinator side of a module: verbs as plain functions, served over JSON-RPC on stdin and stdout.

A host starts the module's program and sends one JSON object a line. `serve` does the handshake, calls the verb that a
request names with its `params`, and answers with what it returns:

    def params_check(params):
        checked = field(params, "params", dict)
        return {"ok": True, "normalized_params": checked, "errors": []}

    sys.exit(serve({"params.check": params_check, ...}, module_id="org.example.toy", version="1.0.0"))

A verb is a pure function of its params: no time, no chance, no network, no file but the module's own. One verb runs at
a time, on the main thread. What module code prints goes to stderr, which is the log. Whatever a host sends is answered:
never a traceback on stdout, never a dead process. Standard library only; the rules of a line are in module_rpc.py.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any

from oarbank_sdk import canonical
from oarbank_sdk.canonical import job_key
from oarbank_sdk.module_rpc import (
    CANCELLED,
    INTERNAL,
    NO_SHARED_VERSION,
    NOT_ADVERTISED,
    PARAMS,
    REQUEST,
    UNKNOWN_METHOD,
    Call,
    Error,
    Lines,
    answer,
    error,
    notification,
    parse,
)

__all__ = ["OPTIONAL", "PROTOCOL", "REQUIRED", "Host", "InvalidParams", "digest", "field", "guard", "job_key", "serve"]

PROTOCOL = 1
"""The version of the module protocol that is spoken here."""

REQUIRED = ("params.check", "job.plan", "spec.build", "result.evaluate", "golden.list")
"""Verbs that every module answers."""

OPTIONAL = (
    "result.merge", "result.upgrade", "golden.compare", "study.metrics", "params.distance", "ui.view.compute",
    "op.plan", "op.apply", "campaign.tick", "integrity.check", "move.preflight", "move.postflight", "move.cancelled",
)  # fmt: skip
"""Verbs that a module may answer; those it does are its capabilities."""

Verb = Callable[[dict[str, Any]], Mapping[str, Any]]
_QUEUED = 1024  # requests that wait; more are left in the pipe
_LEVELS = ("debug", "info", "warn", "error")


class InvalidParams(Exception):
    """Raised by a verb whose params cannot be used: answered with -32602. `pointer` says where, as a JSON pointer."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


@dataclass(frozen=True, slots=True)
class Host:
    """What `initialize` told about the host; `log` sends it a line for its log."""

    version: str | None
    platform: str | None
    capabilities: tuple[str, ...]
    settings: Mapping[str, Any]
    module_digest: str | None
    _send: Callable[[bytes], None] = _field(repr=False, compare=False)

    def log(self, level: str, msg: str, **data: Any) -> None:
        """Send a `log` notification; `level` is debug, info, warn or error. ValueError for another."""
        if level not in _LEVELS:
            raise ValueError(f"level: must be one of {', '.join(_LEVELS)}; found {level}")
        self._send(notification("log", {"level": level, "msg": msg, "data": data}))


def serve(
    verbs: Mapping[str, Verb],
    *,
    module_id: str,
    version: str,
    initialized: Callable[[Host], None] | None = None,
) -> int:
    """Answer a host until it says shutdown or closes stdin; return the exit status.

    `verbs` maps each name of `REQUIRED`, and those of `OPTIONAL` that the module has, to a function from params (an
    object) to the result (an object; its fields that are None are left out). A verb refuses its params with
    `InvalidParams`; anything else it raises is answered with -32603, its traceback going to stderr. `initialized` is
    called once, with the `Host`, before the first verb.

    The status is 0, or 1 when stdout takes no more. ValueError at once for a required verb that is missing, or a verb
    that the protocol does not have.
    """
    if missing := [name for name in REQUIRED if name not in verbs]:
        raise ValueError(f"verbs: must hold every required verb; missing {', '.join(missing)}")
    if foreign := [name for name in verbs if name not in REQUIRED + OPTIONAL]:
        raise ValueError(f"verbs: must be verbs of the protocol; found {', '.join(foreign)}")
    source, sink = guard()
    return _Session(verbs, {"id": module_id, "version": version}, initialized, source, sink).run()


def field(params: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
    """The value of `params[name]`, which must be of `kind`; raises `InvalidParams` with its pointer.

    Absent and null are `default` where one is given. A bool is no int here.
    """
    value = params.get(name)
    if value is None and default is not ...:
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        words = " or ".join(_WORDS.get(one, one.__name__) for one in kinds)
        raise InvalidParams(f"/{name}: must be {words}", f"/{name}")
    return value


_WORDS: dict[type, str] = {
    dict: "an object", list: "a list", str: "text", int: "a whole number", float: "a number", bool: "true or false",
}  # fmt: skip


def digest(payload: Mapping[str, Any], over: tuple[str, ...]) -> str:
    """The digest of a result: SHA-256, in lower-case hex, of the canonical object of the payload's fields in `over`.

    `over` is the manifest's `results.digest.over`. Raises `InvalidParams` for a field that is missing or has no
    canonical form.
    """
    for name in over:
        if name not in payload:
            raise InvalidParams(f"/{name}: must be there, since results are compared by it", f"/{name}")
    try:
        return canonical.sha256({name: payload[name] for name in over})
    except canonical.CanonicalError as fault:
        raise InvalidParams(f"payload: {fault}") from None


_guarded: tuple[int, int] | None = None


def guard() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol: what is printed from here on goes to stderr, and nothing reads stdin.

    `serve` calls it; a program that imports chatty packages calls it before them. Returns the two descriptors that
    `serve` uses. Again: the same.
    """
    global _guarded
    if _guarded is None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        source, sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        _guarded = source, sink
    return _guarded


class _Session:
    """One host. A thread reads and answers what needs no verb; `run` calls the verbs."""

    def __init__(
        self,
        verbs: Mapping[str, Verb],
        module: dict[str, str],
        initialized: Callable[[Host], None] | None,
        source: int,
        sink: int,
    ) -> None:
        self._verbs = verbs
        self._module = module
        self._initialized = initialized
        self._source = source
        self._sink = sink
        self._calls: queue.Queue[Call | None] = queue.Queue(_QUEUED)
        self._lock = threading.Lock()
        self._open: dict[str | int | float | None, bool] = {}  # ids that wait for an answer; True: cancelled
        self._host: Host | None = None
        self._status: int | None = None

    def run(self) -> int:
        """Until there is nothing more to answer."""
        threading.Thread(target=self._read, name="module-stdin", daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            while self._status is None and (call := self._calls.get()) is not None:
                self._serve(call)
        return self._status or 0

    # ---- the reading thread ----

    def _read(self) -> None:
        lines = Lines()
        try:
            while data := os.read(self._source, 1 << 16):
                for line in lines.feed(data):
                    if not self._take(parse(line)):
                        return
            self._take(parse(lines.end()))
        except OSError:
            pass  # a stdin that cannot be read is one that ended
        finally:
            self._calls.put(None)

    def _take(self, call: Call | Error | None) -> bool:
        """False at a shutdown."""
        if isinstance(call, Error):
            self._send(error(call))
        elif call is not None and call.wants_answer:
            self._queue(call)
        elif call is not None and call.method == "$/cancel":
            self._cancel(call.params.get("id"))
        return not (isinstance(call, Call) and call.method == "shutdown")

    def _queue(self, call: Call) -> None:
        with self._lock:
            twice = call.id in self._open
            self._open.setdefault(call.id, False)
        if twice:
            self._send(error(Error(REQUEST, "/id: must be no other open request's", call.id)))
        else:
            self._calls.put(call)

    def _cancel(self, call_id: Any) -> None:
        """Answer at once: a verb is pure, so what it still does changes nothing."""
        if not isinstance(call_id, (str, int, float)) or isinstance(call_id, bool):
            return
        with self._lock:
            if self._open.get(call_id, True):
                return  # nothing of that id waits, or it was cancelled before
            self._open[call_id] = True
        self._send(error(Error(CANCELLED, "cancelled", call_id)))

    # ---- the main thread ----

    def _serve(self, call: Call) -> None:
        with self._lock:
            cancelled = self._open[call.id]
        line = b"" if cancelled else self._line(call)
        with self._lock:
            cancelled = self._open.pop(call.id)
        if not cancelled:
            self._send(line)

    def _line(self, call: Call) -> bytes:
        """The answer to a request, whatever comes of it."""
        try:
            return answer(call.id, dict(self._result(call)))
        except _Answer as told:
            return error(Error(told.code, str(told), call.id, told.data))
        except InvalidParams as fault:
            data = {"pointer": fault.pointer} if fault.pointer else None
            return error(Error(PARAMS, str(fault), call.id, data))
        except (Exception, SystemExit) as fault:  # the one fence: a host outlives its modules' faults
            with contextlib.suppress(OSError):
                traceback.print_exc()
            last = (str(fault).splitlines() or [""])[-1][:200]
            return error(Error(INTERNAL, f"{call.method}: {type(fault).__name__}: {last}", call.id))

    def _result(self, call: Call) -> Mapping[str, Any]:
        if call.method == "initialize":
            return self._initialize(call.params)
        if self._host is None:
            raise _Answer(REQUEST, f"{call.method}: must come after initialize")
        verb = self._verbs.get(call.method)
        if verb is not None:
            return verb(call.params)
        if call.method in OPTIONAL:
            raise _Answer(NOT_ADVERTISED, f"{call.method}: must be a verb that this module advertises")
        raise _Answer(UNKNOWN_METHOD, "method: must be a verb of the module protocol")

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._host is not None:
            raise _Answer(REQUEST, "initialize: must come once")
        asked = field(params, "protocol_versions", list)
        versions = [one for one in asked if isinstance(one, int) and not isinstance(one, bool)]
        if PROTOCOL not in versions:
            said = f"/protocol_versions: must hold {PROTOCOL}"
            raise _Answer(NO_SHARED_VERSION, said, {"supported": [PROTOCOL], "requested": versions})
        about = field(params, "host", dict, {})
        names = [one for one in field(about, "capabilities", list, []) if isinstance(one, str)]
        settings = field(params, "settings", dict, {})
        of_bundle = field(params, "module_digest", str, None)
        host = Host(
            field(about, "version", str, None), field(about, "platform", str, None), tuple(names), settings, of_bundle,
            self._send,
        )  # fmt: skip
        if self._initialized is not None:
            self._initialized(host)
        self._host = host
        capabilities = [name for name in self._verbs if name not in REQUIRED]
        return {"protocol_version": PROTOCOL, "module": self._module, "capabilities": capabilities}

    def _send(self, line: bytes) -> None:
        with self._lock:
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(self._sink, left) :]
            except BrokenPipeError:  # the host is gone
                self._end(0)
            except OSError as fault:
                print(f"stdout: must take every answer; {fault.strerror}", file=sys.stderr)
                self._end(1)

    def _end(self, status: int) -> None:
        if self._status is None:
            self._status = status
        with contextlib.suppress(queue.Full):
            self._calls.put_nowait(None)


class _Answer(Exception):
    """Inside this file: the error that answers a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

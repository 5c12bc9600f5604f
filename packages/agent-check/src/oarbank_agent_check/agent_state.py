"""What the agent remembers from one run to the next: a folder with the law's state, its clock, and one journal.

The state is replaced atomically, so an agent that is killed leaves the last whole one. One agent at a time uses a
folder. A state that cannot be read is never taken for an empty one, because bans would end by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from oarbank_agent_check.agent_clock import ClockMark
from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.state import State, state_from_json, state_to_json
from oarbank_sdk import strictjson
from oarbank_sdk.control import replace_text

FOLDER = "oarbank-agent-check"
MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Remembered:
    """A state of the law, and where the agent's clock stood."""

    law: State
    mark: ClockMark


def default_folder() -> Path:
    """Return where this user's programs keep their state: `$XDG_STATE_HOME`, else the system's own place."""
    given = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / FOLDER
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / FOLDER
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / FOLDER
    return Path.home() / ".local" / "state" / FOLDER


class StateFolder:
    """The folder, locked for as long as the block lasts. Raises `UsageError` for one that cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._lock: int | None = None

    def __enter__(self) -> StateFolder:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            why = exc.strerror or exc
            raise UsageError(
                f"{self.path}: the state needs a folder to write in; {why}. Give another --state."
            ) from None
        if not _locked(self._lock):
            self.__exit__(None, None, None)
            raise HostFault(
                f"{self.path}: one agent at a time uses a state; found another. Wait for it, or give another --state."
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def journal(self) -> Path:
        """The journal that is kept where no other is asked for."""
        return self.path / "journal.ndjson"

    def data(self, module_id: str) -> Path:
        """Return the module's own data folder."""
        return self.path / "data" / module_id

    def load(self) -> Remembered | None:
        """Return what was remembered, None before the first run. Raises `HostFault` for a file nobody can read."""
        file = self.path / "state.json"
        try:
            with open(file, "rb") as opened:
                data = opened.read(MOST_BYTES)
            return _remembered(strictjson.loads(data))
        except FileNotFoundError:
            return None
        except OSError as exc:
            why = exc.strerror or str(exc)
        except (ValueError, KeyError, TypeError) as exc:
            why = f"{type(exc).__name__}: {str(exc)[:120]}"
        raise HostFault(f"{file}: must be the state that a run left; {why}. Remove it to start anew, without bans.")

    def save(self, remembered: Remembered) -> None:
        """Replace the state. Raises `HostFault` where the disk refuses it."""
        document = {
            "t": remembered.mark.t,
            "wall": remembered.mark.wall,
            "law": state_to_json(remembered.law),
        }
        try:
            replace_text(self.path / "state.json", json.dumps(document, allow_nan=False) + "\n")
        except OSError as exc:
            why = exc.strerror or exc
            raise HostFault(f"{self.path}: the state must be written; {why}. Free some space.") from None


def _remembered(value: Any) -> Remembered:
    return Remembered(state_from_json(value["law"]), ClockMark(_number(value["t"]), _number(value["wall"])))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"a time must be a number; found {str(value)[:80]!r}")
    return float(value)


def _locked(number: int) -> bool:
    """Lock the file until it is closed; False when somebody else holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where nothing is started
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False

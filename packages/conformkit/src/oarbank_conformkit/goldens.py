"""A golden: a task whose result is known, as one JSON file in the bundle.

Pure: bytes in, a golden or one reason out. A golden is written by a person, so it is read strictly: a key that nobody
knows is a typing error that would silently prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oarbank_sdk import strictjson
from oarbank_sdk.contracts.faults import found
from oarbank_sdk.paths import portable_path_fault

_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"name", "stage", "key_inputs", "payload", "datasets", "mounts", "platforms", "expected"}


@dataclass(frozen=True, slots=True)
class Golden:
    """What to run and which digest must come out."""

    name: str
    stage: str | None  # None: the default stage
    key_inputs: Mapping[str, Any]
    payload: Mapping[str, Any]
    datasets: tuple[str, ...]
    mounts: Mapping[str, str]
    platforms: tuple[str, ...] | None  # None: every platform
    digest: str
    digest_version: int
    path: str = ""  # of its file in the bundle

    def runs_on(self, platform: str) -> bool:
        """Say whether the golden is meant for a platform."""
        return self.platforms is None or platform in self.platforms


@dataclass(frozen=True, slots=True)
class BadGolden:
    """A golden file that cannot be used: where in the bundle, and one sentence about what is wrong."""

    path: str
    fault: str


def golden(path: str, data: bytes) -> Golden | BadGolden:
    """Return the golden in a file of the bundle."""
    try:
        value = strictjson.loads(data)
        return _golden(value, path)
    except strictjson.StrictJSONError as exc:
        return BadGolden(path, str(exc))
    except _Refused as exc:
        return BadGolden(path, str(exc))


class _Refused(Exception):
    pass


def _golden(value: Any, path: str) -> Golden:
    if not isinstance(value, dict):
        raise _Refused(f"must be an object; found {found(value)}")
    for key in value:
        if key not in _KEYS:
            raise _Refused(f"/{key}: must be a known key; found {found(key)}")
    expected = _typed(value, "expected", dict)
    digest = expected.get("digest")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise _Refused(f"/expected/digest: must be 64 lower-case hex digits; found {found(digest)}")
    version = expected.get("digest_version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _Refused(f"/expected/digest_version: must be a whole number, 1 or more; found {found(version)}")
    return Golden(
        name=_name(value),
        stage=_typed(value, "stage", str, default=None),
        key_inputs=_typed(value, "key_inputs", dict),
        payload=_typed(value, "payload", dict),
        datasets=tuple(_texts(value, "datasets") or ()),
        mounts=_mounts(value),
        platforms=_texts(value, "platforms"),
        digest=digest,
        digest_version=version,
        path=path,
    )


_WORDS = {dict: "an object", str: "text", list: "a list"}
_REQUIRED = object()


def _typed(value: dict[str, Any], key: str, kind: type, default: Any = _REQUIRED) -> Any:
    if default is not _REQUIRED and value.get(key) is None:
        return default
    if key not in value or not isinstance(value[key], kind):
        there = found(value[key]) if key in value else "none"
        raise _Refused(f"/{key}: must be {_WORDS[kind]}; found {there}")
    return value[key]


def _name(value: dict[str, Any]) -> str:
    name = _typed(value, "name", str)
    if not 1 <= len(name) <= 80:
        raise _Refused(f"/name: must have 1 to 80 characters; found {len(name)}")
    return name


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...] | None:
    texts = _typed(value, key, list, default=None)
    if texts is not None and not all(isinstance(text, str) for text in texts):
        raise _Refused(f"/{key}: must be a list of text; found {found(texts)}")
    return None if texts is None else tuple(texts)


def _mounts(value: dict[str, Any]) -> Mapping[str, str]:
    mounts = _typed(value, "mounts", dict, default={})
    for dataset, path in mounts.items():
        fault = portable_path_fault(path) if isinstance(path, str) else "must be text"
        if fault is not None:
            raise _Refused(f"/mounts/{dataset}: {fault}; found {found(path)}")
    return mounts

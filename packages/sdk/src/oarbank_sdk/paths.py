"""Portable paths: names of files that mean the same on every system.

A path travels in envelopes, events and results, and is joined to a directory by somebody else, on another system. So it
must stay below that directory and name the same file on file systems that fold case, forbid names or trim dots. The
rule looks at text alone: it must never ask a file system. Standard library only.
"""

from __future__ import annotations

import re

MAX_BYTES = 200
MAX_SEGMENT_BYTES = 100

_SEGMENT = re.compile(r"[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*")
# What Windows keeps for devices, with or without an extension.
_DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]", re.IGNORECASE)


def portable_path_fault(path: str) -> str | None:
    """Return None for a portable path, else the rule it breaks in a few words ("must be relative").

    Portable: relative, `/` between segments, ASCII, at most 200 bytes; each segment at most 100 bytes of
    `A-Z a-z 0-9 . _ + @ -`, not starting or ending with a dot, and no Windows device name.
    """
    if not path:
        return "must not be empty"
    if not path.isascii():
        return "must be ASCII"
    if len(path) > MAX_BYTES:
        return f"must be at most {MAX_BYTES} bytes"
    if "\\" in path:
        return "must use / between segments"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "must be relative"
    return next((fault for segment in path.split("/") if (fault := _segment_fault(segment))), None)


def _segment_fault(segment: str) -> str | None:
    if not segment:
        return "must not hold an empty segment"
    if segment in (".", ".."):
        return f"must not hold a {segment} segment"
    if len(segment) > MAX_SEGMENT_BYTES:
        return f"must have segments of at most {MAX_SEGMENT_BYTES} bytes"
    if segment.endswith("."):
        return "must not have a segment that ends with a dot"
    if segment.startswith("."):
        return "must not have a segment that starts with a dot"
    if not _SEGMENT.fullmatch(segment):
        return "must hold only letters, digits and ._+@- between slashes"
    if _DEVICE.fullmatch(segment.partition(".")[0]):
        return "must not name a Windows device"
    return None

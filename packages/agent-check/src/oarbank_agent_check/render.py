"""Samples as text: one JSON object a line for programs, one readable line a sample for people.

Decides wording and digits alone. An unknown is always shown as unknown with its reason, never as a number. Pure.
"""

from __future__ import annotations

import json
from datetime import datetime, tzinfo

from oarbank_agent_check.readings import Sample

MOST_NAMED = 5
"""How many processes a readable line names one by one."""


def json_line(sample: Sample) -> str:
    """Give the `gpu-sample-1` document on one line, without the line's end."""
    return json.dumps(sample.to_json(), separators=(",", ":"), allow_nan=False)


def readable_lines(sample: Sample, zone: tzinfo | None = None) -> list[str]:
    """Give one line for the sample and one for each reason why something is unknown; `zone` None is local time."""
    clock = datetime.fromtimestamp(sample.t, zone).strftime("%H:%M:%S")
    if sample.share is None or sample.busy_s is None:
        head = f"{clock}  share unknown"
    else:
        head = f"{clock}  share {sample.share:.3f}  busy {sample.busy_s:.3f} s of {sample.window_s:.3f} s"
    lines = [f"{head}  {sample.source}  {_members(sample)}"]
    for process in sample.unknown:
        where = sample.source if process.pid is None else f"pid {process.pid}"
        lines.append(f"          {where}: {process.reason} Nothing was counted as zero.")
    return lines


def _members(sample: Sample) -> str:
    named = ", ".join(map(str, sample.pids[:MOST_NAMED]))
    more = len(sample.pids) - MOST_NAMED
    return f"pid {named}" + (f" and {more} more" if more > 0 else "")

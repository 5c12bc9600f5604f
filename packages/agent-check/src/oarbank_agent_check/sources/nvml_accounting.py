"""NVML's accounting statistics: per process, how many samples were taken and what they add up to.

`sumGpuUtil` adds up percent * 100 of each sample, so it counts in ten thousandths of a sample; a sample lasts as long
as the interval divided by the samples that fell into it (the driver's timer runs about once a second). Only where the
owner has switched accounting on: nothing here ever does. Pure.

Never run: NVIDIA GPUs; tested on made statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oarbank_agent_check.gpu_readings import Added
from oarbank_agent_check.readings import NS_PER_S, Unknown

FULL = 10_000
"""What one sample adds that was busy all the time."""

TIMER_S = 1.0
"""How long a sample of a process lasts that was not there before: the driver's accounting timer."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the driver has added up for one process: samples, and their utilisation in percent * 100."""

    samples: int
    total: int


Mark = tuple[float, Account] | None
"""An account and the moment of the reading in which it last grew; None: to be read once before it counts."""

UNSEEN = Unknown("NVML's account of this process has no beginning yet to count from. The next sample can tell.")


def step(
    marks: Mapping[int, Mark] | None, t: float, accounts: Mapping[int, Account | Unknown]
) -> tuple[dict[int, Mark], list[Added], dict[int, Unknown]]:
    """Give the marks to keep, the time that each process used since them, and what can't be told.

    `marks` None makes it a baseline. A process without a mark is all new, and so is one whose account fell: another
    process has its pid. A process that has ended keeps its mark.
    """
    kept = dict(marks or {})
    added, unknown = [], {}
    for pid, account in accounts.items():
        if isinstance(account, Unknown):
            unknown[pid] = account
            kept[pid] = None
            continue
        if marks is not None and kept.get(pid, ()) is None:
            unknown[pid] = UNSEEN
            kept[pid] = (t, account)
            continue
        mark = kept.get(pid)
        if mark is not None and (account.samples < mark[1].samples or account.total < mark[1].total):
            mark = None
        if mark is not None and account.samples == mark[1].samples and account.total == mark[1].total:
            # The timer has not run since: nothing to add yet, and the mark's moment stays.
            added.append(Added(pid, 0, 0, max(0, round((t - mark[0]) * NS_PER_S))))
            continue
        kept[pid] = (t, account)
        if marks is None:
            continue
        before_t, before = mark if mark is not None else (t - account.samples * TIMER_S, Account(0, 0))
        samples = account.samples - before.samples
        busy = account.total - before.total
        length_ns = round((t - before_t) / samples * NS_PER_S) if samples else 0
        if length_ns < 0 or busy > samples * FULL:
            unknown[pid] = Unknown(
                f"NVML's account of pid {pid} can't be true: {busy} in {samples} samples. Read again."
            )
            continue
        busy_ns = busy * length_ns // FULL
        # The samples at both ends of the window need not lie inside it: a whole one may be missing or too many.
        added.append(Added(pid, busy_ns, max(0, busy_ns - length_ns), busy_ns + length_ns))
    return kept, added, unknown

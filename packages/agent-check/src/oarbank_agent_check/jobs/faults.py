"""Who must act when a job cannot be started: the caller, or this machine.

What a runner does wrong is never an exception: it is evidence. Two things are left. A `UsageError` means that the
question was wrong (exit 2); a `HostFault` means that this side could not do its part (exit 3), and it must never be
blamed on the runner. Both carry one line in the form `where: what must hold; what was found. What to do.`
"""

from __future__ import annotations


class UsageError(Exception):
    """The caller asked for something that cannot be done; the text is one line for people."""


class HostFault(Exception):
    """This program, or the machine below it, failed at its own part; the text is one line for people."""

"""How the commands run that start somebody's job: signals told, the screen put away, faults in one line each.

What such a command needs takes long to load, and help needs none of it: the work is imported when it is to be done.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module

from oarbank_agent_check.commands.words import CouldNotTell, WrongUse


def run_owned(arguments: argparse.Namespace, module: str, function: str) -> int:
    """Do the work of a command, `function` of `module`, and give the exit code. Raises `WrongUse`, `CouldNotTell`."""
    from oarbank_agent_check.interrupts import Interrupts

    with Interrupts() as interrupts, ExitStack() as stack:
        from oarbank_agent_check.jobs.faults import HostFault, UsageError
        from oarbank_agent_check.screen import Screen

        screen = Screen()
        stack.callback(screen.close)
        work: Callable[..., int] = getattr(import_module(f"oarbank_agent_check.{module}"), function)
        try:
            return work(arguments, interrupts, screen, stack)
        except UsageError as fault:
            raise WrongUse(str(fault)) from None
        except HostFault as fault:
            raise CouldNotTell(str(fault)) from None

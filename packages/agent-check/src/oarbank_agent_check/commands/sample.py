"""`sample`: how busy a process keeps a device, one line or one `gpu-sample-1` document a sample."""

from __future__ import annotations

import argparse
import sys

from oarbank_agent_check import render
from oarbank_agent_check.commands.words import (
    COULD_NOT_TELL,
    TOLD,
    Commands,
    WrongUse,
    count,
    interval,
    pid,
    write_lines,
)
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sampling import Ending, take_samples
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.gpu import UnknownReader, readers
from oarbank_agent_check.tree import ProcessTree

EXIT_CODES = (
    "Exit codes: 0 every sample that was asked for could be read, 2 wrong use, 3 something could not be read, or the"
    " process ended before all samples were taken."
)

NO_GPU = "no GPU time can be read here. For a stand-in on the CPU: --measure cpu."


def add(commands: Commands) -> None:
    """Add the command's words."""
    sample = commands.add_parser(
        "sample",
        help="measure a process, and with --children all of its descendants",
        description="Measure a process: its GPU time by every source of this system or, with --measure cpu, a stand-in"
        " for it: the CPU time of the busiest thread in each tick of at most 5 ms.",
        epilog=EXIT_CODES,
    )
    sample.add_argument("--pid", type=pid, required=True, metavar="N", help="the process")
    sample.add_argument("--children", action="store_true", help="its descendants belong to it too")
    sample.add_argument("--measure", choices=("gpu", "cpu"), default="gpu", help="what is measured (default gpu)")
    sample.add_argument("--count", type=count, default=1, metavar="K", help="samples; 0: until it ends (default 1)")
    sample.add_argument("--interval", type=interval, default=2.0, metavar="S", help="seconds a sample (default 2.0)")
    sample.add_argument("--json", action="store_true", help="one gpu-sample-1 document a line")
    sample.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Take the samples and give the exit code."""
    tree = ProcessTree(arguments.pid, children=arguments.children)
    source = _source(tree, arguments.measure)
    unread = 0

    def hand_over(sample: Sample) -> None:
        nonlocal unread
        unread += sample.share is None
        write_lines([render.json_line(sample)] if arguments.json else render.readable_lines(sample))

    try:
        ending, taken = take_samples(
            source,
            lambda: bool(tree.pids()),
            interval_s=arguments.interval,
            count=arguments.count,
            hand_over=hand_over,
        )
    except KeyboardInterrupt:
        return COULD_NOT_TELL if arguments.count else TOLD
    if ending is Ending.ENDED:
        asked = f" of {arguments.count}" if arguments.count else ""
        noun = "sample" if (arguments.count or taken) == 1 else "samples"
        print(f"oarbank-agent-check: pid {arguments.pid}: ended after {taken}{asked} {noun}", file=sys.stderr)
    if isinstance(source, GpuMeter) and source.hindrance() is not None:
        print(f"oarbank-agent-check: {NO_GPU}", file=sys.stderr)
    return exit_code(ending, asked=arguments.count, unread=unread)


def _source(tree: ProcessTree, measure: str) -> Source:
    if measure == "cpu":
        return CpuThreads(tree, keep_s=1.0)
    try:
        return GpuMeter(tree, readers())
    except UnknownReader as fault:
        raise WrongUse(str(fault)) from None


def exit_code(ending: Ending, *, asked: int, unread: int) -> int:
    """Say whether all that was asked for could be told: `asked` 0 asks until the end, `unread` samples were unknown."""
    short = ending is Ending.ENDED and asked > 0
    return COULD_NOT_TELL if unread or short else TOLD

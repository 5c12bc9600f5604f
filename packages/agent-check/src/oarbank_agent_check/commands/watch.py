"""`watch`: a job's share over time beside its duty, and what the agent's check makes of it; nothing is ever paused."""

from __future__ import annotations

import argparse
import math
import sys

from oarbank_agent_check import render, watch_view
from oarbank_agent_check.commands.words import (
    COULD_NOT_TELL,
    NO,
    TOLD,
    Commands,
    CouldNotTell,
    Unwritable,
    WrongUse,
    count,
    interval,
    pid,
    write_lines,
)
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.jobs.live import LiveText
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sampling import Ending, take_samples
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.gpu import UnknownReader, readers
from oarbank_agent_check.tree import ProcessTree

EXIT_CODES = (
    "Exit codes: 0 all could be read and, with --duty, no strike fell, 1 a strike fell, 2 wrong use, 3 something could"
    " not be read, or the process ended before all samples were taken."
)


def add(commands: Commands) -> None:
    """Add the command's words."""
    watch = commands.add_parser(
        "watch",
        help="show a process's share over time, and how it stands with the check",
        description="Watch a process until it ends, or until Ctrl-C. With --duty it is judged as the agent judges:"
        " three samples in a row above the duty plus 0.1 are a strike, what can't be read counts as above, and the"
        " first sample is a baseline. Nothing is paused.",
        epilog=EXIT_CODES,
    )
    watch.add_argument("--pid", type=pid, required=True, metavar="N", help="the process")
    watch.add_argument("--children", action="store_true", help="its descendants belong to it too")
    watch.add_argument("--duty", type=duty, metavar="D", help="the share that it promised to hold, 0 to 1")
    watch.add_argument("--measure", choices=("gpu", "cpu"), default="gpu", help="what is measured (default gpu)")
    watch.add_argument("--count", type=count, default=0, metavar="K", help="samples; 0: until it ends (default 0)")
    watch.add_argument("--interval", type=interval, default=2.0, metavar="S", help="seconds a sample (default 2.0)")
    watch.add_argument("--json", action="store_true", help="one gpu-sample-1 document a line")
    watch.set_defaults(run=run)


def duty(text: str) -> float:
    """Read a duty."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:  # false for NaN too
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1; found {text[:80]!r}")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Watch, and give the exit code."""
    tree = ProcessTree(arguments.pid, children=arguments.children)
    source = _source(arguments.measure, tree)
    window = Window(arguments.duty, as_json=arguments.json)
    try:
        ending, _ = take_samples(
            source,
            lambda: bool(tree.pids()),
            interval_s=arguments.interval,
            count=arguments.count,
            hand_over=window.show,
        )
    except KeyboardInterrupt:
        ending = Ending.ENDED if arguments.count else Ending.ENOUGH
    finally:
        window.leave()
    short = ending is Ending.ENDED and arguments.count > 0
    return exit_code(window.seen, short=short)


def exit_code(seen: watch_view.Watching, *, short: bool) -> int:
    """Say no where a strike fell that was read, else whether all could be told."""
    if seen.struck:
        return NO
    return COULD_NOT_TELL if seen.unread or short else TOLD


def _source(measure: str, tree: ProcessTree) -> Source:
    if measure == "cpu":
        return CpuThreads(tree, keep_s=1.0)
    try:
        meter = GpuMeter(tree, readers())
    except UnknownReader as fault:
        raise WrongUse(str(fault)) from None
    why = meter.hindrance()
    if why is not None:
        meter.stop()
        raise CouldNotTell(f"no GPU time can be read here: {why.reason} For a stand-in on the CPU: --measure cpu.")
    return meter


class Window:
    """Where samples are shown: a live region on a terminal, lines elsewhere, documents with `as_json`."""

    def __init__(self, duty: float | None, *, as_json: bool) -> None:
        self.seen = watch_view.Watching(duty)
        self._json = as_json
        self._live = LiveText(sys.stdout, wanted=not as_json)
        self._marks = watch_view.BLOCKS if _can_print(watch_view.BLOCKS) else watch_view.PLAIN
        self._last: str | None = None

    def show(self, sample: Sample) -> None:
        """Take a sample in and show it. Raises as `write_lines` does."""
        self.seen, strike = watch_view.hear(self.seen, sample)
        if strike is not None:
            self._say(strike)
        if self._json:
            write_lines([render.json_line(sample)])
        elif self._live.on:
            self._last = watch_view.region(self.seen, sample, self._marks)
            self._redraw(self._last)
        else:
            first, *reasons = render.readable_lines(sample)
            judged = "" if self.seen.duty is None else f"  check: {watch_view.check_words(self.seen)}"
            write_lines([first + judged, *reasons])

    def leave(self) -> None:
        """Keep the last region on the screen, and begin a line below it."""
        if self._live.on and self._last is not None:
            write_lines([""])

    def _say(self, line: str) -> None:
        """Say something that stays: above the region, among the lines, or beside the documents."""
        if self._json:
            print(f"oarbank-agent-check: {line}", file=sys.stderr)
            return
        if self._live.on:
            self._redraw("")
            self._live.clear()
        write_lines([line])

    def _redraw(self, text: str) -> None:
        try:
            self._live(text)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise Unwritable(fault.strerror or str(fault)) from None


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

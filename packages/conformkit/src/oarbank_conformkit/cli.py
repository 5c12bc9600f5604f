"""`oarbank-sdk conform`: arguments in, a report and an exit code out. It translates and holds no rule.

Exit codes: 0 nothing failed, 1 something did, 2 wrong use, 3 could not tell. The parts that take long to load are
imported when the command runs, so that asking for help is quick and an interrupt finds somebody who understands it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from oarbank_agent_check.jobs.module import FIXTURES, MANIFEST
from oarbank_conformkit.limits import Limits

if TYPE_CHECKING:
    from oarbank_conformkit.checks import Check


MOST_S = 86400.0

DIRECTORY = "OARBANK_CONFORM_DIR"
"""The environment variable that names the module to judge when nobody else does; a workspace sets it for itself."""


LIMIT_OPTIONS = {
    "doctor": "how long the doctor may take",
    "settle": "by when a pause or threads must be in force",
    "window": "how long a pause and a throttle are watched",
    "shutdown": "how long a coordinator may take to end",
}
"""Options in seconds, each for the field of that name in `Limits`."""


class Conform:
    """The command that `oarbank-sdk` finds through its entry point."""

    help = "prove that a runner holds its duty, stops when told and gives the results it promises"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.epilog = (
            "Exit codes: 0 nothing failed, 1 something did, 2 wrong use, 3 something that must hold could not be told."
        )
        parser.add_argument(
            "dir",
            metavar="DIR",
            nargs="?",
            default=os.environ.get(DIRECTORY) or ".",
            help=f"the module's directory, the one that holds {MANIFEST} (${DIRECTORY}, else the current one)",
        )
        parser.add_argument("--fixtures", metavar="FILE", help=f"what to run beside the goldens (DIR/{FIXTURES})")
        parser.add_argument("--data", metavar="FOLDER", help="what each run finds in its data directory: models")
        parser.add_argument(
            "--only",
            metavar="PATTERN",
            action="append",
            default=[],
            help="judge these rules or suites alone, such as golden or 'stop.*'; again: these too",
        )
        parser.add_argument("--list", action="store_true", help="print the rules, and judge nothing")
        for option, what in LIMIT_OPTIONS.items():
            default = getattr(Limits(), f"{option}_s")
            help_ = f"{what} ({default:g} s)"
            parser.add_argument(f"--{option}-limit", metavar="S", type=_seconds, default=default, help=help_)
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
        parser.add_argument("--junit", metavar="FILE", help="write JUnit XML too, for systems that show test results")
        parser.add_argument("--html", metavar="FILE", help="write one page too, with a picture of each duty spec")
        parser.add_argument("--no-runner", action="store_true", help="judge the files alone and start nothing")
        parser.add_argument("--strict", action="store_true", help="what could not be told counts as a failure")

    def run(self, ns: argparse.Namespace) -> int:
        """Judge the module and return the exit code."""
        try:
            return _conform(ns)
        except _Unwritable as exc:
            # Python flushes at the very end once more, and must not complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print(f"conform: the report must be written; {exc}. Send the output elsewhere.", file=sys.stderr)
            return 3


class _Unwritable(Exception):
    """The report could not be written; the text is the system's reason."""


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= MOST_S:
        raise argparse.ArgumentTypeError(f"must be seconds, above 0 and at most {MOST_S:g}; found {text!r}")
    return value


def _conform(ns: argparse.Namespace) -> int:
    from importlib.metadata import version

    from oarbank_agent_check.jobs.faults import HostFault, UsageError
    from oarbank_agent_check.jobs.host import this_host
    from oarbank_agent_check.jobs.live import LiveText
    from oarbank_conformkit import bundle, data_folder, report_file
    from oarbank_conformkit.conduct import conduct
    from oarbank_conformkit.render import html, junit, text
    from oarbank_conformkit.render import json as json_report

    if ns.list:
        return _list(ns)
    live = LiveText(wanted=not ns.json)
    colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def tell(one: Check) -> None:
        live.clear()
        _write(text.check_lines(one, colour=colour))

    try:
        asked = (("--junit", ns.junit, junit.render), ("--html", ns.html, html.render))
        files = [(report_file.checked(option, name), render) for option, name, render in asked if name is not None]
        report = conduct(
            bundle.read(ns.dir, ns.fixtures),
            this_host(),
            kit=version("oarbank-conformkit"),
            runner=not ns.no_runner,
            strict=ns.strict,
            only=ns.only,
            limits=Limits(**{f"{option}_s": getattr(ns, f"{option}_limit") for option in LIMIT_OPTIONS}),
            data=None if ns.data is None else data_folder.checked(ns.data),
            tell=(lambda one: None) if ns.json else tell,
            live=live,
        )
    except UsageError as exc:
        print(exc, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        live.clear()
        print("conform: interrupted; nothing was concluded, and no process of the runner is left.", file=sys.stderr)
        raise
    live.clear()
    _write(json_report.render(report) if ns.json else text.summary(report))
    code = report.exit
    for path, render in files:
        try:
            report_file.write(path, render(report))
        except HostFault as exc:
            print(exc, file=sys.stderr)
            code = 3
    return code


def _list(ns: argparse.Namespace) -> int:
    from oarbank_conformkit import rule_list
    from oarbank_conformkit.rules import catalogue, chosen

    try:
        ids = chosen(ns.only)
    except KeyError as exc:
        print(f"--only {exc.args[0]}: must match a rule or a suite; see --list. Found none.", file=sys.stderr)
        return 2
    rules = [rule for rule in catalogue().values() if rule.id in ids]
    _write(rule_list.as_json(rules) if ns.json else rule_list.as_text(rules))
    return 0


def _write(text: str) -> None:
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:  # the reader has left, which is no fault; whoever called deals with it
        raise
    except OSError as exc:
        raise _Unwritable(exc.strerror or str(exc)) from None


COMMAND = Conform()

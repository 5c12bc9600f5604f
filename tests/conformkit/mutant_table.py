"""The mutant table: every wrong runner fails exactly the rules it breaks, and the honest ones fail none.

A file of tests/mutants says what its runner does wrong: `BREAKS` names the rules that it must fail, `WARNS` those that
are advice and of which it must be warned, no less exactly.

    hatch run mutants [NAME ...] [--whole] [--at-once N]

A mutant meets the suites of the rules that it breaks, an honest runner all of them. Each is judged in a process of its
own, several at once; one whose rule could not be told because the machine was busy is judged again with nothing beside
it. Prints a line for each and the count. Exit codes: 0 all as they should be, 1 one was not, 3 one could not be told.
With `--whole` every mutant meets every suite: one that burns beside its units then fails a pause too, so this is for a
look and not for a verdict.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.sources.gpu import VARIABLE as READER
from oarbank_conformkit import bundle
from oarbank_conformkit.checks import Check
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.limits import Limits
from oarbank_conformkit.report import Report
from oarbank_conformkit.rules import chosen
from tests.conformkit import bundles
from tests.fakegpu import reader, runners
from tests.fakegpu.running import fake_gpu
from tests.leftovers import running_below

ROOT = Path(__file__).parents[2]
COORDINATORS = bundles.MUTANTS / "coordinators"

QUICK = Limits(doctor_s=20.0, settle_s=1.0, window_s=0.6, shutdown_s=1.0)
"""Limits for modules whose tasks last a moment."""

ASKED_OF_COORDINATORS = {"params": [{"units": 3}, {"units": 0}], "ops": [{"verb": "queue", "params": {"n": 1}}]}

AT_ONCE = 3
"""How many are judged at once on two processors: most of them idle most of the time."""

LIMIT_S = 240.0
"""What takes longer hangs."""

SETS = ("failed", "unknown", "excused", "warned")
"""The fields of a row that are sets of rules."""

AGAIN = 2
"""How often one is judged again, alone, that could not be told."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One runner or coordinator, and what it says of itself."""

    name: str
    source: str
    breaks: frozenset[str] = frozenset()
    warns: frozenset[str] = frozenset()  # without any of both it is honest
    only: tuple[str, ...] = ()  # what the kit is asked for, where it says so
    limits: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    gpu: bool = False
    coordinator: bool = False

    @property
    def suites(self) -> tuple[str, ...]:
        """Suites of the rules that it breaks or is warned of; all of them for an honest one."""
        if self.coordinator:
            return ("protocol",)
        return self.only or tuple(sorted({rule.partition(".")[0] for rule in self.breaks | self.warns}))

    @property
    def expected(self) -> frozenset[str]:
        """Rules that it breaks among those that it meets."""
        return self.breaks & chosen(self.only) if self.only else self.breaks

    @property
    def advised(self) -> frozenset[str]:
        """Rules that it is warned of among those that it meets."""
        return self.warns & chosen(self.only) if self.only else self.warns


@dataclass(frozen=True, slots=True)
class Row:
    """What the kit said of one: rules failed, not told and, of these, the machine's doing; rules that were advice."""

    failed: frozenset[str]
    unknown: frozenset[str]
    excused: frozenset[str]
    exit: int
    warned: frozenset[str] = frozenset()
    left: int = 0  # processes that outlived it
    took_s: float = 0.0

    def wrong(self, mutant: Mutant) -> str:
        """Say what is wrong with the verdict; empty where nothing is."""
        faults = []
        if extra := self.failed - mutant.expected:
            faults.append(f"fails {', '.join(sorted(extra))} too")
        if missing := mutant.expected - self.failed - self.excused:
            faults.append(f"does not fail {', '.join(sorted(missing))}")
        if extra := self.warned - mutant.advised:
            faults.append(f"is warned of {', '.join(sorted(extra))} too")
        if missing := mutant.advised - self.warned - self.excused:
            faults.append(f"is not warned of {', '.join(sorted(missing))}")
        if not mutant.breaks and (untold := self.unknown - self.excused):
            faults.append(f"leaves {', '.join(sorted(untold))} open")
        if mutant.breaks and self.exit == 0:
            faults.append("is green")
        if not mutant.breaks and self.exit == 1 and not self.failed:
            faults.append("is refused")
        if self.left:
            faults.append(f"leaves {self.left} processes behind")
        return "; ".join(faults)

    def untold(self, mutant: Mutant) -> frozenset[str]:
        """Return the rules that the machine kept from being told and that had to be."""
        wanted = (mutant.expected | mutant.advised) or self.unknown
        return frozenset((wanted - self.failed - self.warned) & self.excused)


# ---- what there is ------------------------------------------------------------------------------------------


def told(path: Path) -> dict[str, Any]:
    """What a mutant's file says of itself, without running it."""
    assigned = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in assigned}  # type: ignore[union-attr]


def mutants() -> dict[str, Mutant]:
    """Return the wrong ones by name, in the order of their files."""
    runners_ = [_mutant(path) for path in sorted(bundles.MUTANTS.glob("*.py"))]
    coordinators = [_mutant(path, coordinator=True) for path in sorted(COORDINATORS.glob("*.py"))]
    return {one.name: one for one in [*runners_, *coordinators]}


def honest() -> dict[str, Mutant]:
    """Return the right ones by name."""
    coordinator = (bundles.HERE / "coordinator_stand_in.py").read_text()
    all_ = [
        Mutant("honest_runner", bundles.runner(), plan={"golden": {"units": 60, "unit_s": 0.01}}),
        Mutant("honest_runner_on_a_gpu", runners.HONEST, gpu=True),
        Mutant("honest_coordinator", coordinator, coordinator=True),
    ]
    return {one.name: one for one in all_}


def _mutant(path: Path, *, coordinator: bool = False) -> Mutant:
    words = told(path)
    return Mutant(
        ("coordinators/" if coordinator else "") + path.stem,
        path.read_text(encoding="utf-8"),
        frozenset(words.get("BREAKS", ())),
        frozenset(words.get("WARNS", ())),
        tuple(words.get("ONLY", ())),
        words.get("LIMITS", {}),
        words.get("PLAN", {}),
        gpu=words.get("NEEDS") == "gpu",
        coordinator=coordinator,
    )


# ---- one of them, in this process ------------------------------------------------------------------------------


def judge(mutant: Mutant, *, whole: bool) -> tuple[Report, int]:
    """Judge one here; also say how many of its processes were left."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder, ExitStack() as stack:
        place = Path(folder) / "module"
        if mutant.gpu:
            gpu = stack.enter_context(fake_gpu())
            os.environ[READER], os.environ[reader.VARIABLE] = reader.SPEC, gpu.path
            runners.build(place, gpu.path, mutant.source, **mutant.plan)
        elif mutant.coordinator:
            plan = {"fixtures": ASKED_OF_COORDINATORS, **mutant.plan}
            bundles.build(place, bundles.runner(), coordinator=mutant.source, **plan)
        else:
            bundles.build(place, mutant.source, **mutant.plan)
        only = () if whole and not mutant.coordinator else mutant.suites
        limits = replace(QUICK, **mutant.limits)
        report = conduct(bundle.read(str(place)), this_host(), kit="test", only=only, limits=limits)
        return report, len(running_below(place))


def row(report: Report, left: int) -> Row:
    """Sum up a report."""
    unknown = [one for one in report.checks if one.status == "unknown"]
    return Row(
        failed=frozenset(one.rule for one in report.checks if one.status == "fail"),
        unknown=frozenset(one.rule for one in unknown),
        excused=frozenset(one.rule for one in unknown if machine_was_busy(one)),
        exit=report.exit,
        warned=frozenset(one.rule for one in report.checks if one.status == "warn"),
        left=left,
        took_s=report.took_s,
    )


def machine_was_busy(one: Check) -> bool:
    """Say whether the evidence of a check shows that the machine was busy."""
    seen = one.evidence or {}
    waited_s, disturbed_s = seen.get("waited_s") or 0.0, seen.get("disturbed_s", 0.0)
    late = waited_s > 0.1 or disturbed_s > 0.1 or seen.get("tick_worst_s", 0.0) > 0.02
    return late or seen.get("machine_busy") is True


# ---- all of them, several at once --------------------------------------------------------------------------------


class Table:
    """Judges mutants in processes of their own, `at_once` at a time."""

    def __init__(self, *, whole: bool, at_once: int = AT_ONCE) -> None:
        self._whole = whole
        self._at_once = at_once
        self._places = threading.Semaphore(at_once)
        self._alone = threading.Lock()
        # A copy: pytest sets variables in its own thread, and a start that reads them just then fails (EFAULT).
        self._env = dict(os.environ)

    def row(self, mutant: Mutant) -> Row:
        """Judge one; again, with nothing beside it, as long as the machine keeps it from being told."""
        with self._room(1):
            found = self._apart(mutant)
        for _ in range(AGAIN):
            if not found.untold(mutant) or found.failed - mutant.expected:
                break
            with self._room(self._at_once):
                found = self._apart(mutant)
        return found

    @contextmanager
    def _room(self, places: int) -> Generator[None]:
        with self._alone:  # whoever wants all of them gets them before the next one starts
            for _ in range(places):
                self._places.acquire()
        try:
            yield
        finally:
            self._places.release(places)

    def _apart(self, mutant: Mutant) -> Row:
        command = [sys.executable, "-m", "tests.conformkit.mutant_table", "--judge", mutant.name]
        command += ["--whole"] if self._whole else []
        done = subprocess.run(
            command, cwd=ROOT, env=self._env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{mutant.name}: the kit must judge it; found {done.stderr[-2000:]}")
        said = json.loads(done.stdout.splitlines()[-1])
        sets = {name: frozenset(said.pop(name)) for name in SETS}
        return Row(**sets, **said)


@contextmanager
def pending(
    asked: Iterable[Mutant], *, whole: bool = False, at_once: int = AT_ONCE
) -> Generator[dict[str, Future[Row]]]:
    """Begin to judge all of them, in order; who leaves the block early waits only for those under way."""
    table = Table(whole=whole, at_once=at_once)
    workers = ThreadPoolExecutor(at_once + 1)
    try:
        yield {one.name: workers.submit(table.row, one) for one in asked}
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="judge these; without any, all of them")
    parser.add_argument("--whole", action="store_true", help="every mutant meets every suite")
    parser.add_argument("--at-once", metavar="N", type=int, default=AT_ONCE, help=f"how many at once ({AT_ONCE})")
    parser.add_argument("--judge", metavar="NAME", help="judge one, in this process, and print a JSON object")
    parser.add_argument("--only", metavar="SUITE", action="append", help="with --judge: these suites alone")
    options = parser.parse_args()
    known = honest() | mutants()
    strangers = [name for name in [*options.names, *filter(None, [options.judge])] if name not in known]
    if strangers or options.at_once < 1:
        what = f"{strangers[0]} is none of them" if strangers else f"found {options.at_once} at once"
        print(f"mutants: must name mutants of tests/mutants, 1 or more at once; {what}.", file=sys.stderr)
        return 2
    if options.judge:
        one = replace(known[options.judge], only=tuple(options.only)) if options.only else known[options.judge]
        found = row(*judge(one, whole=options.whole))
        sets = {name: sorted(getattr(found, name)) for name in SETS}
        print(json.dumps({**sets, "exit": found.exit, "left": found.left, "took_s": round(found.took_s, 2)}))
        return 0
    return _told([known[name] for name in options.names or known], whole=options.whole, at_once=options.at_once)


def _told(asked: list[Mutant], *, whole: bool, at_once: int) -> int:
    began = time.monotonic()
    wrong = untold = 0
    with pending(asked, whole=whole, at_once=at_once) as rows:
        for one in asked:
            found = rows[one.name].result()
            fault, open_ = found.wrong(one), found.untold(one)
            wrong += bool(fault)
            untold += bool(open_) and not fault
            print(_line(one, found, fault, open_), flush=True)
    took_s = time.monotonic() - began
    print(f"{len(asked)} judged in {took_s:.0f} s: {len(asked) - wrong - untold} as they should be, "
          f"{wrong} wrong, {untold} could not be told on this machine")  # fmt: skip
    return 1 if wrong else 3 if untold else 0


def _line(one: Mutant, found: Row, fault: str, open_: frozenset[str]) -> str:
    mark = "WRONG" if fault else "open" if open_ else "ok"
    said = ", ".join(sorted(found.failed)) or "nothing"
    said += f", is warned of {', '.join(sorted(found.warned))}" if found.warned else ""
    more = f"  <- {fault}" if fault else f"  <- busy machine: {', '.join(sorted(open_))}" if open_ else ""
    return f"{mark:5}  {one.name:48} {found.took_s:5.1f} s  fails {said}{more}"


if __name__ == "__main__":
    sys.exit(main())

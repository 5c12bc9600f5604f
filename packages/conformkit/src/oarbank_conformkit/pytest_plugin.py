"""The kit inside pytest: `pytest --oarbank-module DIR` judges a module beside the tests that are there.

One item for each rule of the kit, under the module's manifest, so items exist before anything runs and keep their
names: `DIR/oarbank-module.toml::duty.burst`. The module is judged once in a session, when the first of them is about to
run and outside of its time limit; each item then tells what became of its rule. What could not be told is a failure and
a rule that did not come up is skipped: neither may look green.

Without the option nothing happens and nothing that takes long is imported.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from oarbank_conformkit.bundle import Bundle
    from oarbank_conformkit.checks import Check
    from oarbank_conformkit.report import Report

MARK = "conformance"

ALWAYS = "manifest.valid"
"""Judged whatever is chosen: it costs nothing, and a rule that does not come up is then skipped and no wrong use."""

_PLUGIN = "oarbank-conformance-session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("oarbank", "conformance of an Oarbank module")
    group.addoption("--oarbank-module", metavar="DIR", help="judge the module in DIR, one item for each rule")
    group.addoption("--oarbank-fixtures", metavar="FILE", help="what to run beside its goldens, not its own file")
    group.addoption("--oarbank-data", metavar="FOLDER", help="what each run finds in its data directory")


def pytest_configure(config: pytest.Config) -> None:
    """Read the module's files and add its manifest to what is collected. Raises `UsageError` for wrong use."""
    config.addinivalue_line("markers", f"{MARK}: a rule that --oarbank-module judges")
    directory = config.getoption("oarbank_module")
    if directory is None:
        for option in ("fixtures", "data"):
            if config.getoption(f"oarbank_{option}") is not None:
                raise pytest.UsageError(f"--oarbank-{option}: needs a module; found none. Give --oarbank-module DIR.")
        return
    if getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError("--oarbank-module: must have the machine alone to measure; found -n. Leave it out.")
    judged = Judged(config, directory, config.getoption("oarbank_fixtures"), config.getoption("oarbank_data"))
    config.pluginmanager.register(judged, _PLUGIN)
    named = {_place(config, arg) for arg in config.args}
    if judged.manifest.resolve() not in named:
        config.args.append(str(judged.manifest))


def _place(config: pytest.Config, arg: str) -> Path:
    return (config.invocation_params.dir / arg.partition("::")[0]).resolve()


class Judged:
    """One module and, once an item asks, the report on it; the hooks that a session needs for it."""

    def __init__(self, config: pytest.Config, directory: str, fixtures: str | None, data: str | None) -> None:
        from oarbank_agent_check.jobs.faults import UsageError
        from oarbank_agent_check.jobs.module import MANIFEST
        from oarbank_conformkit import bundle, data_folder

        self._config = config
        self.report: Report | None = None
        self.fault: str | None = None  # why there is no report
        try:
            self._bundle: Bundle = bundle.read(directory, fixtures)
            self._data = None if data is None else data_folder.checked(data)
        except UsageError as exc:
            raise pytest.UsageError(str(exc)) from None
        self.manifest = Path(self._bundle.path) / MANIFEST

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the manifest, and leave every other file to others."""
        if file_path.resolve() != self.manifest.resolve():
            return None
        rules = Rules.from_parent(parent, path=file_path)
        rules.judged = self
        return rules

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        """Judge the module before its first item is timed."""
        if isinstance(item, RuleItem) and self.report is None and self.fault is None:
            self._judge(item.session)
        yield

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what it comes to, and what the kit advises."""
        from oarbank_conformkit.render import text

        if self.report is None:
            return
        terminalreporter.section("conformance")
        for one in self.report.checks:
            if one.status == "warn":
                terminalreporter.write(text.check_lines(one))
        terminalreporter.write(text.summary(self.report).lstrip("\n"))

    def _judge(self, session: pytest.Session) -> None:
        """Judge what the session's items ask for."""
        from importlib.metadata import version

        from oarbank_agent_check.jobs.faults import UsageError
        from oarbank_agent_check.jobs.host import this_host
        from oarbank_agent_check.jobs.live import LiveText
        from oarbank_conformkit.conduct import conduct
        from oarbank_conformkit.rules import catalogue

        asked = {item.name for item in session.items if isinstance(item, RuleItem)}
        only = [] if asked >= set(catalogue()) else sorted({*asked, ALWAYS})
        with self._on_the_terminal():
            live = LiveText()
            try:
                self.report = conduct(
                    self._bundle,
                    this_host(),
                    kit=version("oarbank-conformkit"),
                    only=only,
                    data=self._data,
                    live=live,
                )
            except UsageError as exc:  # such as a module for other platforms
                self.fault = str(exc)
            finally:
                live.clear()

    def _on_the_terminal(self) -> AbstractContextManager[None]:
        """Let what is written meanwhile reach the terminal; nothing where there is none to reach."""
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if capture is None or reporter is None:
            return nullcontext()
        if reporter.isatty:
            reporter.ensure_newline()
        return capture.global_and_fixture_disabled()


class Rules(pytest.File):
    """A module's manifest, with one item for each rule in the order of the catalogue."""

    judged: Judged

    def collect(self) -> Iterator[pytest.Item]:
        """Give the items."""
        from oarbank_conformkit.rules import catalogue

        for rule in catalogue():
            yield RuleItem.from_parent(self, name=rule, judged=self.judged)


class Refused(Exception):
    """A rule that does not hold, or of which nobody could tell whether it does; the text is for people."""


class RuleItem(pytest.Item):
    """One rule, named by its id."""

    def __init__(self, *, judged: Judged, **given: Any) -> None:
        super().__init__(**given)
        self._judged = judged
        self.add_marker(MARK)

    def runtest(self) -> None:
        """Tell what became of the rule. Raises `Refused`."""
        if self._judged.report is None:
            raise Refused(f"could not tell: {self._judged.fault}")
        told(self.name, self._judged.report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the text alone: a traceback of the kit says nothing about the module."""
        return str(excinfo.value) if isinstance(excinfo.value, Refused) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the rule in headings. A bare id would be taken for a class and a method, and shown with `::`."""
        return self.path, None, f"rule {self.name}"


def told(rule: str, report: Report) -> None:
    """Return when the rule holds. Raises `Refused` when not, or when nobody can tell; skips what does not apply."""
    from oarbank_conformkit.rules import catalogue

    checks = [one for one in report.checks if one.rule == rule]
    worse = [one for one in checks if one.status in ("fail", "unknown")]
    if any(one.status == "fail" for one in checks) or (worse and catalogue()[rule].level == "must"):
        raise Refused("\n".join(_lines(rule, worse)))
    if worse:
        pytest.skip(f"advice, and could not tell: {worse[0].detail}")
    if checks and all(one.status == "skip" for one in checks):
        pytest.skip("; ".join(dict.fromkeys(one.detail for one in checks)))
    if not checks:
        wrong = next((one.rule for one in report.checks if one.status in ("fail", "unknown")), None)
        pytest.skip("did not come up" if wrong is None else f"did not come up; what went wrong: {wrong}")


def _lines(rule: str, checks: list[Check]) -> Iterator[str]:
    from oarbank_conformkit.render.characters import visible
    from oarbank_conformkit.rules import catalogue

    found = catalogue()[rule]
    yield f"{found.says} ({found.level}, {found.source})"
    for one in checks:
        yield ""
        yield f"{'failed' if one.status == 'fail' else 'could not tell'}: {visible(one.name)}"
        yield from (f"  {line}" for line in visible(one.detail).splitlines())
        yield from (f"  {visible(key)}: {visible(str(value))}" for key, value in (one.evidence or {}).items())

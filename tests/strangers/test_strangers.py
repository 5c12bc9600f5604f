"""A runner written from the contracts alone, in another language, conforms: the protocol is files and signals."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oarbank_agent_check.jobs.host import this_host
from oarbank_conformkit import bundle
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.report import Report
from tests.conformkit import bundles
from tests.conformkit.conftest import QUICK
from tests.conformkit.test_mutants import DO_NOT_APPLY, excused

HERE = Path(__file__).parent

compiler = shutil.which("gcc") or shutil.which("cc")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The stand-in's bundle with the runner in C in its place."""
    folder = bundles.build(tmp_path / "module", "", golden={"units": 60, "unit_s": 0.01})
    for name in ("runner.py", "stand_in.py"):
        (folder / name).unlink()
    assert compiler is not None
    build = [compiler, "-O1", "-Wall", "-Werror", "-o", folder / "runner", HERE / "runner.c"]
    subprocess.run(build, check=True, timeout=60)
    manifest = folder / "oarbank-module.toml"
    exec_ = '["python", "-I", "{bundle}/runner.py"]'
    text = manifest.read_text()
    assert exec_ in text
    manifest.write_text(text.replace(exec_, '["{bundle}/runner"]\nruntime = { kind = "native" }'))
    return folder


def judge(folder: Path) -> Report:
    return conduct(bundle.read(str(folder)), this_host(), kit="test", limits=QUICK)


@pytest.mark.realtime
@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the runner waits with sigtimedwait, which Linux has")
def test_runner_in_c_conforms(module: Path) -> None:
    report = judge(module)

    others = {one.rule for one in report.checks if one.status not in ("pass", "warn")}
    assert others <= DO_NOT_APPLY | excused(report), report.checks
    assert {"duty.measured_share", "pause.result", "retry.result"} <= {one.rule for one in report.checks}

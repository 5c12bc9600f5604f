"""control.py and duty.py copied alone into an empty folder hold the brief's example, isolated from everything."""

from __future__ import annotations

import ast
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oarbank_sdk
from tests import needs

SOURCE = Path(oarbank_sdk.__file__).parent
FILES = ("control.py", "duty.py")

EXAMPLE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from control import Control, Stopped
from duty import Duty

def model(batch):
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end:
        pass

ctl = Control(sys.argv[1])                      # first: it installs the nudge handler
duty = Duty(ctl, events=sys.argv[1] + "/events.ndjson")
ctl.phase("work")
try:
    for batch in range(100_000):
        ctl.safe_point()                        # pause and stop
        with duty.unit():
            out = model(batch)
except Stopped:
    sys.exit(ctl.acknowledge_stop())
duty.close()
"""


@pytest.mark.parametrize("name", FILES)
def test_it_imports_the_standard_library_alone(name):
    tree = ast.parse((SOURCE / name).read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert all(node.level == 0 for node in froms)
    modules |= {node.module or "" for node in froms}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names


@pytest.mark.realtime
@needs.posix("signals")
def test_the_brief_s_example_runs_from_two_copied_files(tmp_path):
    for name in FILES:
        shutil.copy(SOURCE / name, tmp_path)
    (tmp_path / "control.json").write_text('{"seq": 0, "gpu_duty": 0.2}')
    (tmp_path / "example.py").write_text(EXAMPLE)
    runner = subprocess.Popen([sys.executable, "-I", tmp_path / "example.py", tmp_path], cwd="/")
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "events.ndjson").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (tmp_path / "next").write_text('{"seq": 1, "stop": true}')
        (tmp_path / "next").replace(tmp_path / "control.json")
        runner.send_signal(signal.SIGUSR1)
        assert runner.wait(60) == 75
    finally:
        runner.kill()
        runner.wait()
    report = json.loads((tmp_path / "events.ndjson").read_text().splitlines()[0])
    assert report["name"] == "gpu_duty"
    assert report["data"]["duty"] == 0.2
    assert report["value"] <= 0.3
    assert json.loads((tmp_path / "failure.json").read_text())["fault"] == "transient"

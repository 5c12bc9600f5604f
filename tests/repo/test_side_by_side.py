"""Where tests run side by side, those about real time have no other of their kind beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.repo.test_house import ROOT

FILE = """import os
from pathlib import Path
import pytest

{mark}
@pytest.mark.parametrize("n", range(6))
def test_where(n):
    with Path({log!r}).open("a", encoding="utf-8") as file:
        file.write({name!r} + " " + os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_files_about_real_time_share_one_worker(tmp_path: Path) -> None:
    tests, log = tmp_path / "tests", tmp_path / "log"
    tests.mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = realtime\n", encoding="utf-8")
    for name, mark in (("real_1", "@pytest.mark.realtime"), ("plain", ""), ("real_2", "@pytest.mark.realtime")):
        text = FILE.format(mark=mark, log=str(log), name=name)
        (tests / f"test_{name}.py").write_text(text, encoding="utf-8")

    command = [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", str(tests)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    assert "18 passed" in ran.stdout, ran.stdout + ran.stderr
    worked = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    assert len({worker for name, worker in worked if name.startswith("real")}) == 1
    assert len({worker for _, worker in worked}) == 2

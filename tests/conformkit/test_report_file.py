"""Reports in files: whole or not at all, refused before the run where that can be known, one line when not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_conformkit import report_file
from oarbank_sdk.cli import main
from tests.conformkit import bundles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bundles.build(tmp_path / "module", bundles.runner(), duty_specs=None)


def called(*args: str | Path) -> int:
    return main(["conform", *map(str, args), "--no-runner"])


def test_both_files_are_written_beside_the_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = called(folder, "--json", "--junit", tmp_path / "r.xml", "--html", tmp_path / "r.html")

    out, err = capsys.readouterr()
    checks = json.loads(out)["checks"]
    assert (code, err) == (0, "")
    assert len(ElementTree.parse(tmp_path / "r.xml").findall(".//testcase")) == len(checks)
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["module", "r.html", "r.xml"]


def test_a_failure_is_written_too_and_stays_exit_1(folder: Path, tmp_path: Path) -> None:
    (folder / "goldens" / "selftest.json").write_text("{}")

    assert called(folder, "--junit", tmp_path / "r.xml") == 1
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("failures") == "1"


REFUSED = [
    ("a folder", "{tmp}", "must be a file; found a folder"),
    ("a folder that is not there", "{tmp}/no/r.xml", "must lie in a folder that is there"),
    ("no name", "", "must be a file; found no name"),
    ("a name that no file can have", "{tmp}/a\0b", "must be the name of a file"),
]


@pytest.mark.parametrize("option", ["--junit", "--html"])
@pytest.mark.parametrize(("why", "name", "sentence"), REFUSED, ids=[row[0] for row in REFUSED])
def test_wrong_name_is_exit_2_before_anything_runs(
    why: str, name: str, sentence: str, option: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = called(folder, option, name.format(tmp=tmp_path))

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(f"{option} ")
    assert sentence in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux: a device that is always full")
def test_a_full_disk_is_exit_3_and_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = called(folder, "--html", "/dev/full")

    out, err = capsys.readouterr()
    assert code == 3
    assert out.endswith("the runner was not judged\n")
    assert err == "/dev/full: the report must be written; No space left on device. Give another file.\n"
    assert not Path("/dev/full").is_file()


def test_what_cannot_be_replaced_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report_file.checked("--html", str(tmp_path / "r.html"))
    path.write_text("old")

    def refused(source: object, target: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(HostFault, match=r"r\.html: the report must be written; Input/output error"):
        report_file.write(path, "new")

    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


def test_a_link_stays_a_link_and_a_file_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "real.xml").write_text("old")
    (tmp_path / "real.xml").chmod(0o640)
    (tmp_path / "link.xml").symlink_to("real.xml")

    report_file.write(report_file.checked("--junit", str(tmp_path / "link.xml")), "new")

    assert (tmp_path / "link.xml").is_symlink()
    assert (tmp_path / "real.xml").read_text() == "new"
    assert (tmp_path / "real.xml").stat().st_mode & 0o777 == 0o640


def test_a_fresh_file_has_the_rights_of_any_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        report_file.write(tmp_path / "r.xml", "new")
        assert (tmp_path / "r.xml").stat().st_mode & 0o777 == 0o644
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)

    with pytest.raises(UsageError, match="must be in a folder to write in"):
        report_file.checked("--junit", str(tmp_path / "closed" / "r.xml"))

"""`recording`: every recording gives what its notes say is right, and so do others of the same shapes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.cli import main
from oarbank_agent_check.gpu_readings import Added, Counter, GpuReading, NotARecording
from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources import plain_recording_parse
from oarbank_agent_check.sources.recording_parse import PARSERS, gains_of, readings_of

HERE = Path(__file__).with_name("recordings")
ROWS = json.loads((HERE / "expected.json").read_text())["rows"]
WHOLE = [row for row in ROWS if len(list(HERE.glob(f"{row['file']}*"))) == 1 and row["kind"] != "nvml"]


def ask(capsys, *words: object) -> tuple[int, dict]:
    code = main(["recording", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def pids(*numbers: int) -> list[str]:
    return [word for number in numbers for word in ("--pid", str(number))]


def near(found: int | None, right: int | None, tolerance: float) -> bool:
    if found is None or right is None:
        return found is right
    return abs(found - right) <= tolerance * right


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_each_recording_gives_what_is_right(row, capsys):
    files = sorted(HERE.glob(f"{row['file']}*"))
    code, found = ask(capsys, *files, *pids(*row["job"]))
    tolerance = row["tolerance_rel"]
    for pid, right in row["delta_ns"].items():
        accepted = row.get("accept", [right])
        assert any(near(found["gain_ns"][pid], one, tolerance) for one in accepted), (pid, found)
        assert (pid in found["reasons"]) == (found["gain_ns"][pid] is None)
    assert any(near(found["job_ns"], one, tolerance) for one in row.get("accept", [row["job_delta_ns"]]))
    assert code == (3 if found["reasons"] else 0)
    assert found.keys() == {"gain_ns", "job_ns", "reasons"}


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row["file"])
def test_a_files_name_says_nothing(row, capsys, tmp_path):
    named = tmp_path / "bug-report.bin"
    named.write_bytes((HERE / row["file"]).read_bytes())
    _, found = ask(capsys, named, *pids(*row["job"]))
    _, right = ask(capsys, HERE / row["file"], *pids(*row["job"]))
    assert found == right


def test_people_read_lines(capsys):
    assert main(["recording", str(HERE / "kfd_busy_rocm.json"), "--pid", "2266127"]) == 3
    process, job = capsys.readouterr().out.splitlines()
    assert process.startswith("pid 2266127: unknown: ROCm queues are open")
    assert process.endswith("At least 0.050000000 s could be read.")
    assert job.startswith("job: unknown: ")
    assert main(["recording", str(HERE / "i915_dup_fd.fdinfo"), "--pid", "4242"]) == 0
    assert capsys.readouterr().out == "pid 4242: 1.400000007 s\njob: 1.400000007 s\n"


AMD = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:08:00.0\ndrm-client-id:\t{id}\ndrm-memory-vram:\t9 KiB\n{engines}"
READING = "#@ reading t={t}\n"


def block(pid: int, client: int, fd: int = 5, **engines: int) -> str:
    lines = "".join(f"drm-engine-{name}:\t{value} ns\n" for name, value in engines.items())
    return f"#@ file pid={pid} fd={fd}\n" + AMD.format(id=client, engines=lines)


def error(pid: int, number: int) -> str:
    return f"#@ error pid={pid} path=fdinfo errno={number}\n"


@pytest.mark.parametrize(
    ("first", "last", "asked", "right"),
    [
        ([block(7, 1, gfx=100)], [block(7, 1, gfx=250)], [7], {7: 150}),
        ([block(7, 1, gfx=100)], [error(7, 13)], [7], {7: None}),
        ([error(7, 13)], [block(7, 1, gfx=250)], [7], {7: None}),
        ([block(7, 1, gfx=100)], [error(7, 2)], [7], {7: 0}),
        ([block(7, 1, gfx=100)], [error(7, 5)], [7], {7: None}),
        ([error(7, 2)], [block(7, 1, gfx=250)], [7], {7: 250}),
        ([block(7, 1, gfx=100)], [], [7], {7: 0}),
        ([block(8, 2, gfx=9)], [block(8, 2, gfx=9), block(7, 1, gfx=250)], [7, 8], {7: 250, 8: 0}),
        ([block(7, 1, gfx=9)], [block(7, 1, gfx=9)], [7, 99], {7: 0, 99: None}),
        # A client that closes takes its counter along, and hides nothing of the others.
        ([block(7, 1, gfx=10**12), block(7, 2, fd=6)], [block(7, 2, fd=6, gfx=40)], [7], {7: 40}),
        # The same client in two processes of the job counts once, in one that is outside not at all.
        ([block(7, 1, gfx=5), block(8, 1, gfx=5)], [block(7, 1, gfx=9), block(8, 1, gfx=9)], [8, 7], {7: 4, 8: 0}),
        ([block(7, 1, gfx=5), block(8, 1, gfx=5)], [block(7, 1, gfx=9), block(8, 1, gfx=9)], [8], {8: 0}),
        ([block(7, 1, gfx=5)], [block(7, 1, gfx=3)], [7], {7: 0}),
        ([block(7, 1, gfx=5)], [block(7, 1)], [7], {7: None}),  # still there, and its engines left out
        ([f"#@ file pid=7 fd=5\n{'pos: 0'}\n"], [block(7, 1, gfx=3)], [7], {7: None}),
        # One descriptor that closed while others were read ends nothing.
        ([block(7, 1, gfx=5)], [block(7, 1, gfx=9), error(7, 2)], [7], {7: 4}),
        ([block(7, 1, gfx=5)], [error(7, 2).replace("fdinfo", "fdinfo/6"), block(7, 1, gfx=9)], [7], {7: 4}),
        (["#@ none pid=7\n"], ["#@ none pid=7\n"], [7], {7: 0}),
        (["#@ none pid=7\n"], ["#@ holds pid=7 source=nvml\n"], [7], {7: None}),
    ],
)
def test_shapes_of_fdinfo_recordings(first, last, asked, right, capsys, tmp_path):
    file = tmp_path / "some"
    file.write_text(READING.format(t=0) + "".join(first) + READING.format(t=2) + "".join(last))
    code, found = ask(capsys, file, *pids(*asked))
    assert found["gain_ns"] == {str(pid): gain for pid, gain in right.items()}
    known = None not in right.values()
    assert found["job_ns"] == (sum(right.values()) if known else None)
    assert code == (0 if known else 3)


def test_a_process_outside_the_job_teaches_the_clock_of_the_device(capsys, tmp_path):
    xe = (
        "#@ file pid={} fd=3\ndrm-driver: xe\ndrm-pdev: 0\ndrm-client-id: {}\n"
        "drm-cycles-rcs: {}\ndrm-total-cycles-rcs: {}\n"
    )
    first = READING.format(t=0) + xe.format(1, 1, 0, 1000) + "#@ none pid=7\n"
    (tmp_path / "a").write_text(first + READING.format(t=2) + xe.format(1, 1, 0, 1100) + xe.format(7, 2, 25, 1100))
    assert ask(capsys, tmp_path / "a", *pids(7))[1]["job_ns"] == 500_000_000


def test_readings_may_come_in_several_files_and_any_order(capsys, tmp_path):
    (tmp_path / "b").write_text(READING.format(t=2) + block(7, 1, gfx=30))
    (tmp_path / "a").write_text(READING.format(t=0) + block(7, 1, gfx=10))
    assert ask(capsys, tmp_path / "b", tmp_path / "a", *pids(7))[1]["job_ns"] == 20


def test_one_reading_is_a_baseline(capsys, tmp_path):
    (tmp_path / "a").write_text(READING.format(t=0) + block(7, 1, gfx=10))
    code, found = ask(capsys, tmp_path / "a", *pids(7))
    assert (code, found["job_ns"]) == (3, None)
    assert "A gain needs two" in found["reasons"]["7"]


def test_unknown_in_the_middle_stays_unknown_in_the_sum(capsys, tmp_path):
    parts = [block(7, 1, gfx=10), error(7, 13), block(7, 1, gfx=20), block(7, 1, gfx=30)]
    (tmp_path / "a").write_text("".join(READING.format(t=t) + part for t, part in enumerate(parts)))
    assert ask(capsys, tmp_path / "a", *pids(7))[1]["job_ns"] is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "found none of these"),
        (b"\x00\xff\x7fELF", "found none of these"),
        (b"{}", "found none of these"),
        (b"[" * 100_000, "found none of these"),
        (b'{"readings": []}', "found none of these"),
        (b"#@ file pid=1 fd=2\n", "line 1: a '#@ reading t=SECONDS' line must come first"),
        (b"#@ reading t=nan\n", "line 1: t must be seconds; found 'nan'"),
        (b"#@ reading t=0\n#@ file pid=me fd=2\n", "line 2: pid must be a whole number; found 'me'"),
        (b"#@ reading t=0\n#@ dance pid=1\n", "line 2: must be reading, file, error"),
        (b'{"readings": [{"t_s": 0, "sysfs": []}]}', "each reading must hold 'sysfs'"),
        (b'{"readings": [{"t_s": 0, "counters": [{"pid": 1}], "added": []}]}', "malformed"),
    ],
)
def test_wrong_files_are_one_line_and_exit_2(content, says, capsys, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["recording", str(file), "--pid", "1", "--json"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_files_that_cannot_be_read_or_do_not_belong_together(capsys, tmp_path):
    assert main(["recording", str(tmp_path / "none"), "--pid", "1"]) == 2
    assert main(["recording", str(tmp_path), "--pid", "1"]) == 2
    assert main(["recording", "a\0b", "--pid", "1"]) == 2
    two = [str(HERE / "i915_dup_fd.fdinfo"), str(HERE / "pdh_name_case.json")]
    assert main(["recording", *two, "--pid", "1"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert "all files must be of one source" in lines[-1]


SEEDS = [path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix in {".fdinfo", ".json", ".txt", ".plist"}]


@given(st.sampled_from(SEEDS), st.data())
def test_any_bytes_are_read_or_refused(seed, data):
    document = seed
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(seed)))
        document = seed[:at] + data.draw(st.binary(max_size=8)) + seed[at + data.draw(st.integers(0, 40)) :]
    with contextlib.suppress(NotARecording):
        gains = gains_of(readings_of([document], [1, 42, 4242]), [1, 42, 4242])
        assert gains.keys() == {1, 42, 4242}


@given(st.binary(max_size=200), st.sampled_from(PARSERS))
def test_every_parser_takes_any_bytes(document, parser):
    assert parser.recognises(document) in (True, False)
    with contextlib.suppress(NotARecording):
        assert isinstance(parser.readings([document], [1]), list)


def test_what_any_reader_handed_over_can_be_kept_and_read_again():
    one = GpuReading(
        5.0,
        (Counter(1, "a", "gfx", 2**70, capacity=2), Counter(1, "b", "rcs", 3, 9, 1, "dev")),
        (Added(2, 7, 1, 9), Added(2, 8)),
        {3: Unknown("why")},
        frozenset({"c"}),
        frozenset({4}),
        "new",
        {5: frozenset({"nvml"})},
        frozenset({6}),
    )
    document = plain_recording_parse.written("mine", [one])
    (again,) = readings_of([document], range(9))
    assert again == GpuReading(0.0, *(getattr(one, name) for name in GpuReading.__dataclass_fields__ if name != "t"))

"""Every command on a page runs as it is written, here or in what .ci/run starts, or it is marked with the reason.

Here means: in a copy of this checkout made of links, with a home folder of its own. `hatch run` is then `hatch_run.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.repo import pages
from tests.repo.test_house import ROOT

COMMANDS = [command for page in pages.pages() for command in pages.commands(page)]
# page, how the command begins, the exit codes it may have, a text that it must print
RUN: list[tuple[str, str, tuple[int, ...], str]] = [
    ("docs/integrate.md", "oarbank-sdk schema", (0,), "RunnerControl"),
    ("docs/write-a-runner.md", "hatch run oarbank-sdk new runner", (0,), "Prove it:"),
    ("packages/llmserve/README.md", "oarbank-llmserve doctor", (0,), "ok    backend stub      stand-in, cpu"),
    ("packages/agent-check/README.md", "oarbank-agent-check replay", (0,), '"job": "a1", "until": 68.0'),
]
# page, how the command begins, the file that runs it and the words there
ELSEWHERE: list[tuple[str, str, str, str]] = [
    ("README.md", "pip install hatch && hatch run conform", ".ci/run", "step hatch run conform"),
    ("README.md", "hatch run test", ".ci/run", "step hatch run test"),
    ("docs/write-a-runner.md", "hatch run conform", "tools/dist_use.py", 'place.conforms("my-runner")'),
    ("docs/write-a-runner.md", "mkdir -p ../my-work", "tests/sdk/test_commands.py", 'BY_HAND = "mkdir -p ../my-work"'),
    ("docs/share-your-gpu.md", "", "tests/agent_check/test_try_page.py", 'Path("docs/share-your-gpu.md")'),
    ("docs/run-llmserve.md", "", "tests/llmserve/test_owner_page.py", 'Path("docs/run-llmserve.md")'),
]
# A job beside a protected program takes more than its duty three times in a row.
JOURNAL = """{"t": 0, "kind": "policy", "gpu_jobs": "certified"}
{"t": 0, "kind": "protected", "active": true, "level": 0.3}
{"t": 0, "kind": "job", "job": "a1", "module": "llmserve", "cooperative": true, "gpu_use": "shared", "pausable": true}
""" + "".join(f'{{"t": {t}, "kind": "sample", "job": "a1", "share": 0.41}}\n' for t in (2, 4, 6, 8))


def listed(command: pages.Command) -> list[str]:
    """Where the two tables say that a command is run."""
    places = [(page, begin, "here") for page, begin, _, _ in RUN] + [row[:3] for row in ELSEWHERE]
    return [place for page, begin, place in places if command.page == page and command.text.startswith(begin)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.id)
def test_command_is_run_in_one_place_or_says_why_not(command: pages.Command) -> None:
    if command.why_not is None:
        assert len(listed(command)) == 1, "list it in RUN or ELSEWHERE, or mark it `not run here: WHY`"
    else:
        assert len(command.why_not) > 10
        assert "here" not in listed(command)


def test_tables_name_no_command_that_is_gone() -> None:
    rows = [(page, begin) for page, begin, *_ in [*RUN, *ELSEWHERE]]
    gone = [row for row in rows if not any(c.page == row[0] and c.text.startswith(row[1]) for c in COMMANDS)]

    assert gone == []


@pytest.mark.parametrize(("page", "begin", "place", "words"), ELSEWHERE)
def test_place_that_runs_a_command_is_there(page: str, begin: str, place: str, words: str) -> None:
    assert words in (ROOT / place).read_text("utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links to everything in the checkout, what the pages assume, and `hatch` on the path."""
    top = tmp_path_factory.mktemp("reader")
    folder = top / "checkout"
    folder.mkdir()
    for name in ("packages", "schemas", "examples", "docs", "hatch.toml", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    (top / "bin").mkdir()
    shim = top / "bin" / "hatch"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "tests/repo/hatch_run.py"}" "$@"\n')
    shim.chmod(0o755)
    (folder / "journal.jsonl").write_text(JOURNAL)
    return folder


@pytest.mark.realtime
@pytest.mark.parametrize(("page", "begin", "codes", "says"), RUN, ids=[f"{row[0]}: {row[1]}" for row in RUN])
def test_command_runs_as_written(checkout: Path, page: str, begin: str, codes: tuple[int, ...], says: str) -> None:
    [command] = [one for one in COMMANDS if one.page == page and one.text.startswith(begin)]
    path = os.pathsep.join([str(checkout.parent / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["bash", "-eu", "-c", command.text],
        cwd=checkout, env={**os.environ, "PATH": path, "HOME": str(checkout.parent)},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip

    assert ran.returncode in codes, ran.stdout + ran.stderr
    assert says in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def scripts() -> set[str]:
    """Every script of hatch.toml, as `hatch run` takes it."""
    envs = tomllib.loads((ROOT / "hatch.toml").read_text("utf-8"))["envs"]
    named = {(env, script) for env, table in envs.items() for script in table.get("scripts", {})}
    return {script if env == "default" else f"{env}:{script}" for env, script in named}


@pytest.mark.parametrize("page", pages.pages(), ids=pages.shown)
def test_scripts_that_a_page_names_exist(page: Path) -> None:
    """In prose too: what stands behind `hatch run` is a script, or a program of the environment."""
    known = scripts() | {"oarbank-sdk", "oarbank-agent-check", "oarbank-llmserve", "python", "llm:python"}
    text = page.read_text("utf-8")
    named = re.findall(r"\bhatch\s+run\s+([a-z][a-z0-9:_-]*)", text)

    assert sorted(set(named) - known) == []


def test_commands_of_a_page_are_found() -> None:
    text = "```console\n$ one \\\n    more\nout\n$ two\n```\n```bash\nzero\n```\n"
    text += "<!-- not run here: it needs a Mac -->\n```bash\nthree\n```\n"
    text += "\n```bash\n# not run here: it costs an hour\nfour\n```\n```toml\n$ five\n```\n"

    assert pages.prompts("$ one \\\n    more\nout\n$ two\n") == ["one \\\n    more", "two"]
    assert [(c.text, c.why_not) for c in pages.commands_of(text, "page.md")] == [
        ("one \\\n    more", None),
        ("two", None),
        ("zero", None),
        ("three", "it needs a Mac"),
        ("# not run here: it costs an hour\nfour", "it costs an hour"),
    ]

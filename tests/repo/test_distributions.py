"""What `hatch run dist:check` asks of a distribution, on made ones; and what is seen of ours without building them."""

from __future__ import annotations

import tomllib

import pytest

from tests.repo.test_house import PACKAGES, ROOT
from tools.dist_content import MEMBERS, NEEDED, metadata_faults, relative_links, wheel_faults

LICENCE = b"the licence"
INFO = "oarbank_sdk-0.1.0.dist-info"
METADATA = b"""Metadata-Version: 2.4
Name: oarbank-sdk
Version: 0.1.0
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown

# oarbank-sdk

Read [this](https://example.org/page) and [that](#below).
"""


def wheel(**changed: bytes | None) -> dict[str, bytes]:
    """A good wheel of the SDK with some files changed, or left out where None; `__` stands for `/`."""
    files = {
        "oarbank_sdk/__init__.py": b"",
        "oarbank_sdk/py.typed": b"",
        "oarbank_sdk/schemas/a-1.schema.json": b"{}",
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/licenses/LICENSE": LICENCE,
        **dict.fromkeys(NEEDED["oarbank-sdk"], b""),
    }
    return {name: data for name, data in {**files, **changed}.items() if data is not None}


def told(files: dict[str, bytes]) -> list[str]:
    return wheel_faults("oarbank-sdk", "0.1.0", files, LICENCE, ["a-1.schema.json"])


def test_good_wheel_has_no_fault() -> None:
    assert told(wheel()) == []


ROWS = [
    ({"oarbank_sdk/py.typed": None}, "oarbank_sdk/py.typed: must be in the wheel; found no such file"),
    ({"oarbank_sdk/schemas/a-1.schema.json": None}, "schemas/a-1.schema.json: must be in the wheel"),
    ({"oarbank_sdk/schemas/README.md": b""}, "schemas/README.md: must be a schema of schemas/; found another file"),
    ({NEEDED["oarbank-sdk"][0]: None}, "templates/runner/runner.py: must be in the wheel"),
    ({f"{INFO}/licenses/LICENSE": b"another"}, "LICENSE: must be the repository's LICENSE; found none or another"),
    ({"oarbank_sdk/__pycache__/x.pyc": b""}, "x.pyc: must not be shipped"),
    ({"oarbank_sdk/tests/test_x.py": b""}, "test_x.py: must not be shipped"),
    ({"benchmarks/x.py": b""}, "benchmarks: must not be installed beside oarbank_sdk"),
    ({f"{INFO}/METADATA": METADATA.replace(b"0.1.0", b"0.2.0")}, "Version: must be 0.1.0; found 0.2.0"),
    ({f"{INFO}/METADATA": METADATA.replace(b"#below", b"../docs/x.md")}, "must be absolute, an index shows the page"),
    ({f"{INFO}/METADATA": METADATA.replace(b"# oarbank-sdk", b"# SDK")}, "README: must begin with '# oarbank-sdk'"),
]


@pytest.mark.parametrize(("changed", "fault"), ROWS, ids=[fault[:40] for _, fault in ROWS])
def test_one_fault_is_one_sentence(changed: dict[str, bytes | None], fault: str) -> None:
    [found] = told(wheel(**changed))

    assert fault in found


@pytest.mark.parametrize("package", PACKAGES)
def test_readme_of_a_package_reads_alone(package: str) -> None:
    page = (ROOT / "packages" / package / "README.md").read_text("utf-8")

    assert relative_links(page) == []
    assert page.startswith(f"# oarbank-{package}\n")
    assert "pip install" in page, "a stranger on an index must see how to get it"


@pytest.mark.parametrize("package", PACKAGES)
def test_project_says_what_an_index_shows(package: str) -> None:
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text("utf-8"))["project"]

    assert MEMBERS[project["name"]] == PACKAGES[package]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert project["dynamic"] == ["version"]
    assert project["requires-python"] == ">=3.11"
    assert project["readme"] == "README.md"
    assert "urls" not in project, "no address is ours yet; docs/release.md says when"


def test_code_in_a_readme_is_no_link() -> None:
    assert relative_links("`[a](b)` and\n```\n[c](d)\n```\n[e](f.md) ![g](h.png)") == ["f.md", "h.png"]


def test_metadata_without_anything_names_every_field() -> None:
    assert len(metadata_faults("oarbank-sdk", "0.1.0", b"")) == 6

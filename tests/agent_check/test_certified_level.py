"""A certificate on the disk grants its level to the work it was measured with, and to no other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check import certificate
from oarbank_agent_check.certificate import How
from oarbank_agent_check.certified_level import NotCertified, certified_level
from oarbank_agent_check.certify import Rules
from oarbank_agent_check.host_facts import host_facts, work_facts
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.jobs.manifest import read_manifest
from oarbank_agent_check.jobs.module import Module
from tests.agent_check.paper_program import program, sweep
from tests.conformkit import bundles

FOUND = sweep(program("game", "gaussian", 1), Rules())


@dataclass
class Node:
    """A machine with one module and its certificate."""

    folder: Path
    module: Module

    @property
    def file(self) -> Path:
        return self.folder / "level.json"

    def certify(self) -> None:
        work = work_facts(self.module, self.folder / "module", self.module.stages[0], {}, self.folder)
        document = certificate.document(
            FOUND, host=host_facts(this_host()), work=work, how=How("file", "nvml", "gpu", 10.0, 2.0), made=1.79e9,
            took_s=60.0, seed=1,
        )  # fmt: skip
        self.file.write_text(json.dumps(document))

    def level(self, payload: dict[str, Any] | None = None) -> float:
        stage = self.module.stages[0]
        folder = self.folder / "module"
        return certified_level(self.file, this_host(), self.module, folder, stage, payload or {}, self.folder)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    module = read_manifest(str(bundles.build(tmp_path / "module", bundles.runner()))).module
    assert module is not None
    node = Node(tmp_path, module)
    node.certify()
    return node


def test_level_is_granted_where_nothing_has_changed(node: Node) -> None:
    assert node.level() == FOUND.level


def test_changed_runner_has_no_level(node: Node) -> None:
    (node.folder / "module" / "runner.py").write_text("print('faster now')")

    with pytest.raises(NotCertified, match="it is void: the module's files was"):
        node.level()


def test_other_model_has_no_level(node: Node) -> None:
    with pytest.raises(NotCertified, match=r"it is void: the model was none and is large.gguf \(no file\)"):
        node.level({"model": "large.gguf"})


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"0.3", b"{}", b"[" * 100_000])
def test_what_is_no_certificate_is_wrong_use(node: Node, content: bytes) -> None:
    node.file.write_bytes(content)

    with pytest.raises(UsageError, match=r"level\.json: .*Give a certificate that `sweep` wrote"):
        node.level()


def test_a_fault_with_an_end_of_its_own_is_one_sentence(node: Node) -> None:
    node.file.write_bytes(b"\xef\xbb\xbf{}")

    with pytest.raises(UsageError, match=r"plain UTF-8\. Give"):
        node.level()


def test_missing_file_is_wrong_use(node: Node) -> None:
    node.file.unlink()

    with pytest.raises(UsageError, match="must be readable"):
        node.level()

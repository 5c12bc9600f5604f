"""What several tests of the kit need: a bundle in a fresh folder, and the report on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.sources.gpu import VARIABLE as READER
from oarbank_conformkit import bundle
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.limits import Limits
from oarbank_conformkit.report import Report
from tests import needs
from tests.conformkit import bundles
from tests.conformkit.mutant_table import QUICK
from tests.fakegpu import reader, runners
from tests.fakegpu.running import fake_gpu

Conform = Callable[..., Report]


@pytest.fixture
def conform(tmp_path: Path) -> Conform:
    """Build a bundle with a runner and judge it, in this process."""
    if sys.platform == "win32":
        pytest.skip(f"needs Linux or macOS: {needs.RUNNERS}")

    def judge(source: str, *, only: Sequence[str] = (), limits: Limits = QUICK, **changes: Any) -> Report:
        folder = bundles.build(tmp_path / "module", source, **changes)
        return conduct(bundle.read(str(folder)), this_host(), kit="test", only=only, limits=limits)

    return judge


@pytest.fixture
def conform_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conform]:
    """Build a bundle whose runner uses a fake GPU and judge it, in this process, which reads that GPU."""
    if sys.platform == "win32":
        pytest.skip("needs Linux or macOS: the fake GPU is a Unix socket")
    with fake_gpu() as gpu:
        monkeypatch.setenv(READER, reader.SPEC)
        monkeypatch.setenv(reader.VARIABLE, gpu.path)

        def judge(source: str, *, only: Sequence[str] = (), limits: Limits = QUICK, **changes: Any) -> Report:
            folder = runners.build(tmp_path / "module", gpu.path, source, **changes)
            return conduct(bundle.read(str(folder)), this_host(), kit="test", only=only, limits=limits)

        yield judge


@pytest.fixture
def interop_conformance() -> list[tuple[str, bytes]]:
    """The fixtures files of the interoperability set, by name."""
    folder = Path(__file__).parent.parent / "contracts" / "interop" / "conformance"
    return [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.json"))]

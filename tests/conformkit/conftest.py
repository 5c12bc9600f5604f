"""What several tests of the kit need: a bundle in a fresh folder, and the report on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oarbank_conformkit import bundle
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.host import this_host
from oarbank_conformkit.report import Report
from tests.conformkit import bundles

Conform = Callable[..., Report]


@pytest.fixture
def conform(tmp_path: Path) -> Conform:
    """Build a bundle with a runner and judge it, in this process."""

    def judge(source: str, **changes: Any) -> Report:
        folder = bundles.build(tmp_path / "module", source, **changes)
        return conduct(bundle.read(str(folder)), this_host(), kit="test")

    return judge


@pytest.fixture
def interop_conformance() -> list[tuple[str, bytes]]:
    """The fixtures files of the interoperability set, by name."""
    folder = Path(__file__).parent.parent / "contracts" / "interop" / "conformance"
    return [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.json"))]

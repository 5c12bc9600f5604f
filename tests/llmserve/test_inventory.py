"""What a models folder holds, and what each model needs, read without a backend."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve import appetite
from oarbank_llmserve.appetite import Appetite
from oarbank_llmserve.cli import main
from oarbank_llmserve.gguf import NotGguf, metadata
from oarbank_llmserve.inventory import Entry, entries, table

SMOL = {  # the shape of SmolLM2-135M, whose keys and values take 23 KB a token (measured by saving a sequence)
    "general.architecture": "llama",
    "llama.block_count": 30,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "llama.context_length": 8192,
}


def packed(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(of: Any) -> bytes:
    if isinstance(of, bool):
        return struct.pack("<I?", 7, of)
    if isinstance(of, str):
        return struct.pack("<I", 8) + packed(of)
    if isinstance(of, float):
        return struct.pack("<If", 6, of)
    if isinstance(of, list) and of and isinstance(of[0], str):
        return struct.pack("<IIQ", 9, 8, len(of)) + b"".join(map(packed, of))
    if isinstance(of, list):
        return struct.pack("<IIQ", 9, 4, len(of)) + struct.pack(f"<{len(of)}I", *of)
    return struct.pack("<II", 4, of)


def gguf_bytes(meta: dict[str, Any], version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(meta))
    return head + b"".join(packed(key) + value(one) for key, one in meta.items())


VALUES = {"a": "text", "b": 7, "c": True, "d": 0.5, "e": ["x", "yy"], "f": [1, 2], "g": list(range(2000)), "h": 8}


def test_metadata_keeps_values_and_the_lengths_of_long_arrays() -> None:
    assert metadata(gguf_bytes(VALUES)) == {**VALUES, "e": 2, "g": 2000}


def test_part_of_a_file_says_the_part_of_it_that_is_there() -> None:
    whole = gguf_bytes(VALUES)
    last: dict[str, Any] = {}
    for end in range(4, len(whole) + 1):
        found = metadata(whole[:end])
        assert last.items() <= found.items()
        last = found
    assert len(last) == len(VALUES)


BAD = [
    (b"", "first bytes"),
    (b"GGU", "first bytes"),
    (b"I am a text", "first bytes"),
    (gguf_bytes({}, version=1), "version is 1"),
    (gguf_bytes({}, version=99), "version is 99"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("k") + struct.pack("<I", 77), "type is 77"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("k") + struct.pack("<IIQ", 9, 9, 1), "array's type is 9"),
]


@pytest.mark.parametrize(("data", "why"), BAD)
def test_bytes_that_are_no_gguf_say_why(data: bytes, why: str) -> None:
    with pytest.raises(NotGguf, match=why):
        metadata(data)


@given(st.binary(max_size=60), st.integers(0, 2**64 - 1))
def test_any_bytes_behind_the_magic_are_metadata_or_refused(tail: bytes, count: int) -> None:
    for data in (b"GGUF" + tail, b"GGUF" + struct.pack("<IQQ", 3, 0, count) + tail):
        with contextlib.suppress(NotGguf):
            assert isinstance(metadata(data), dict)


GGUFS: list[tuple[str, dict[str, Any], Appetite]] = [
    ("grouped heads", SMOL, Appetite(100, 23_040, 8192)),
    ("a head for each query", {k: v for k, v in SMOL.items() if "kv" not in k}, Appetite(100, 69_120, 8192)),
    ("heads that differ by layer", {**SMOL, "llama.attention.head_count_kv": [3] * 15 + [0] * 15},
     Appetite(100, 11_520, 8192)),
    ("heads of a size of their own", {**SMOL, "llama.attention.key_length": 128, "llama.attention.value_length": 64},
     Appetite(100, 34_560, 8192)),
    ("no shape", {"general.architecture": "x"}, Appetite(100)),
    ("nothing", {}, Appetite(100)),
    ("a shape of text", {**SMOL, "llama.block_count": "30"}, Appetite(100, None, 8192)),
    ("heads of zero", {**SMOL, "llama.attention.head_count": 0, "llama.attention.head_count_kv": 0},
     Appetite(100, None, 8192)),
]  # fmt: skip


@pytest.mark.parametrize(("meta", "expected"), [row[1:] for row in GGUFS], ids=[row[0] for row in GGUFS])
def test_appetite_of_a_gguf(meta: dict[str, Any], expected: Appetite) -> None:
    assert appetite.of_gguf(meta, 100) == expected


CONFIG = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576,
          "max_position_embeddings": 8192}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (CONFIG, Appetite(100, 23_040, 8192)),
        ({**CONFIG, "head_dim": 128}, Appetite(100, 46_080, 8192)),
        ({"text_config": CONFIG, "max_position_embeddings": 1}, Appetite(100, 23_040, 8192)),
        ({}, Appetite(100)),
        ({**CONFIG, "hidden_size": True}, Appetite(100, None, 8192)),
    ],
)
def test_appetite_of_a_config(config: dict[str, Any], expected: Appetite) -> None:
    assert appetite.of_config(config, 100) == expected


def test_need_is_weights_and_every_token_of_every_sequence() -> None:
    assert Appetite(1_000_000_000, 23_040).needs(8, 1024) == pytest.approx(1.188743680)
    assert Appetite(1_000_000_000).needs(8, 1024) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "smol.gguf").write_bytes(gguf_bytes(SMOL))
    (tmp_path / "text.gguf").write_text("I am a text")
    (tmp_path / "old.gguf").write_bytes(gguf_bytes({}, version=1))
    (tmp_path / "shy.gguf").write_bytes(gguf_bytes({"general.architecture": "x"}))
    (tmp_path / "notes.txt").write_text("not a model")
    (tmp_path / "my model.gguf").write_bytes(gguf_bytes(SMOL))
    (tmp_path / ".hidden").write_text("")
    for name in ("mlx", "empty", "no-weights", "no-json"):
        (tmp_path / name).mkdir()
    for name in ("mlx", "no-weights"):
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "mlx/model.safetensors").write_bytes(b"x" * 100)
    (tmp_path / "no-json/config.json").write_text("{")
    (tmp_path / "dangling.gguf").symlink_to("absent.gguf")
    return tmp_path


def test_every_entry_is_a_model_or_says_why_not(folder: Path) -> None:
    found = {entry.name: entry.backend or entry.why for entry in entries(folder)}

    assert found == {
        "smol.gguf": "llamacpp",
        "shy.gguf": "llamacpp",
        "mlx": "mlx",
        "dangling.gguf": "must be a .gguf file or the folder of an MLX model; found a file with another ending. "
        "Name one of the two",
        "empty": "must hold a config.json; found none",
        "my model.gguf": "a job cannot name it: must hold only letters, digits and ._+@- between slashes",
        "no-json": "must hold a config.json; what it holds is no JSON",
        "no-weights": "must hold .safetensors files; found none",
        "notes.txt": "must be a .gguf file or the folder of an MLX model; found a file with another ending. "
        "Name one of the two",
        "old.gguf": "must be a GGUF file; its version is 1, not 2 or 3",
        "text.gguf": "must be a GGUF file; its first bytes are b'I am'. Fetch it again, or name another",
    }


def test_table_says_what_is_needed_and_what_is_unknown(folder: Path) -> None:
    lines = table(entries(folder), 8, 1024)

    assert lines[0].split() == ["name", "backend", "weights", "context", "8", "x", "1024", "tokens"]
    assert "mlx        mlx       0.00 GB  8192     0.19 GB" in lines
    assert "shy.gguf   llamacpp  0.00 GB  unknown  unknown" in lines
    assert table([], 8, 1024) == []


def test_name_that_no_terminal_should_see_is_one_line() -> None:
    assert table([Entry("a\nb\x1b[2J\udcff.gguf", why="why")], 8, 1024) == [r"a\nb\x1b[2J\udcff.gguf: why"]


@pytest.mark.parametrize(
    ("make", "status", "says"),
    [
        (lambda path: None, 2, "must be a folder of models; No such file"),
        (lambda path: path.write_text("x"), 2, "must be a folder of models; Not a directory"),
        (lambda path: path.mkdir(), 1, "must hold a model; found none"),
    ],
)
def test_folder_without_models_is_one_line(
    tmp_path: Path, make: Any, status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "models")

    assert main(["models", str(tmp_path / "models")]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_folder_is_the_modules_where_an_agent_names_its_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OARBANK_MODULE_DATA", str(folder.parent))
    (folder.parent / "models").symlink_to(folder)
    assert main(["models", "--sequences", "1", "--tokens", "100"]) == 0
    assert "1 x 100 tokens" in capsys.readouterr().out
    (folder.parent / "models").unlink()

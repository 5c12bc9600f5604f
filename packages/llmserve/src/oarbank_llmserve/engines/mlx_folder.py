"""Whether a folder is a model that mlx-lm may be let at: the files are there, whole, and inside it.

Everything is looked at before the library opens anything, for it answers a broken file with a crash or a page of text,
and runs a model's own code where a configuration asks for it. Every fault is a `BadModel` of one line. Nothing outside
the folder is opened: a link that leads out is refused.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import BadModel

MOST_LAYERS = 10_000  # a larger number in a configuration is a mistake, and would take hours to build
_MOST_JSON = 64 << 20  # bytes of a configuration or a header of weights; the largest known are below 10 MB


def check_folder(folder: Path) -> int:
    """The bytes of its weights. Raises `BadModel`."""
    try:
        return _Check(folder).weights()
    except OSError as fault:
        name = Path(fault.filename).name if fault.filename else "its files"
        raise BadModel(f"model {folder.name}: {name}: must be readable; {fault.strerror}") from None


class _Check:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def weights(self) -> int:
        if not self._folder.is_dir():
            raise self._bad("must be a folder with config.json, tokenizer.json and *.safetensors, or name a .gguf file")
        self._links()
        self._config()
        self._file("tokenizer.json")
        files = sorted(self._folder.glob("model*.safetensors"))
        if not files:
            raise self._bad("must hold weights as model*.safetensors; none found. Convert it with mlx_lm.convert")
        self._index({file.name for file in files})
        return sum(self._weights_of(file) for file in files)

    def _links(self) -> None:
        inside = self._folder.resolve()
        for entry in sorted(self._folder.rglob("*")):
            if entry.is_symlink() and not entry.resolve().is_relative_to(inside):
                name = entry.relative_to(self._folder)
                raise self._bad(f"{name}: must not lead out of the model's folder. Put the file itself there")

    def _file(self, name: str) -> Path:
        path = self._folder / name
        if not path.is_file():
            raise self._bad(f"{name}: must be there; {'no file' if path.exists() else 'not found'}")
        return path

    def _config(self) -> None:
        config = self._json("config.json")
        if not isinstance(config.get("model_type"), str):
            raise self._bad(f"config.json: /model_type: must be text; found {_short(config.get('model_type'))}")
        if config.get("model_file") is not None:
            raise self._bad("config.json: /model_file: asks for code of the model's own, which is never run")
        layers = config.get("num_hidden_layers", 1)
        if isinstance(layers, bool) or not isinstance(layers, int) or not 1 <= layers <= MOST_LAYERS:
            raise self._bad(f"config.json: /num_hidden_layers: must be 1 to {MOST_LAYERS}; found {_short(layers)}")

    def _index(self, present: set[str]) -> None:
        if not (self._folder / "model.safetensors.index.json").exists():
            return
        listed = self._json("model.safetensors.index.json").get("weight_map")
        absent = sorted({str(file) for file in listed.values()} - present) if isinstance(listed, dict) else []
        if absent:
            raise self._bad(f"{_short(absent[0])}: must be there, the index lists it; not found. Fetch the model again")

    def _json(self, name: str) -> dict[str, Any]:
        path = self._file(name)
        if path.stat().st_size > _MOST_JSON:
            raise self._bad(f"{name}: must be {_MOST_JSON} bytes at most; found {path.stat().st_size}")
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise self._bad(f"{name}: must be JSON; it does not read as such") from None
        if not isinstance(found, dict):
            raise self._bad(f"{name}: must be an object; found {_short(found)}")
        return found

    def _weights_of(self, path: Path) -> int:
        """Bytes of its tensors. A file that is cut short or made of something else would crash the library."""
        if not path.is_file():
            raise self._bad(f"{path.name}: must be a file")
        size = path.stat().st_size
        with path.open("rb") as file:
            begins = file.read(8)
            length = struct.unpack("<Q", begins)[0] if len(begins) == 8 else -1
            if not 2 <= length <= min(size - 8, _MOST_JSON):
                raise self._bad(f"{path.name}: must be a safetensors file; its first bytes are {begins!r}")
            header = file.read(length)
        ends = _end_of_tensors(header)
        if ends is None:
            raise self._bad(f"{path.name}: must be a safetensors file; its header does not read as such")
        if 8 + length + ends != size:
            raise self._bad(f"{path.name}: must have {8 + length + ends} bytes; found {size}. Fetch it again")
        return ends

    def _bad(self, what: str) -> BadModel:
        return BadModel(f"model {self._folder.name}: {what}")


def _end_of_tensors(header: bytes) -> int | None:
    try:
        tensors = json.loads(header)
        ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
        return max(ends, default=0) if all(type(end) is int for end in ends) else None
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None


def _short(value: object) -> str:
    said = "nothing" if value is None else repr(value)
    return said if len(said) <= 80 else said[:77] + "..."

"""A model's folder into memory: the model, its tokenizer, and what the configuration says about both.

mlx-lm reads the files, without running code that a model brings along. Whatever it makes of a stranger's files is a
`BadModel` of one line. Weights are read a layer at a time, so that a stop and a duty are heard meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import BadModel, EngineError, LoadStopped, end_of
from oarbank_llmserve.engines.mlx_library import memory_fence, models, settle, tokenizers
from oarbank_llmserve.engines.mlx_pieces import is_byte_level, piece_of

UNKNOWN_TRAIN = 4096  # tokens that a model takes which does not say how many
TRAIN_NAMES = ("max_position_embeddings", "max_sequence_length", "n_positions", "seq_length")


def load(folder: Path) -> tuple[Any, dict[str, Any], Any]:
    """The model with weights not yet read, its config, its tokenizer."""
    try:
        with memory_fence():
            model, config = models.load_model(folder, lazy=True, trust_remote_code=False)
            asked = {"trust_remote_code": False, "local_files_only": True}
            tokenizer = tokenizers.load(folder, asked, eos_token_ids=config.get("eos_token_id"))
            if not len(model.layers) or tokenizer.backend_tokenizer is None:
                raise BadModel(f"model {folder.name}: must have layers and a tokenizer of the usual kind; it has not")
            return model, config, tokenizer
    except EngineError:
        raise
    except Exception as fault:  # three libraries, and what a stranger's files make of them
        raise BadModel(f"model {folder.name}: MLX does not load it: {end_of(fault)}") from None


def read_weights(model: Any, going: Callable[[], bool]) -> None:
    """A layer at a time: that is how long a stop waits."""
    with memory_fence():
        for part in (*model.layers, model):
            if not going():
                raise LoadStopped("stopped while the model loaded")
            settle(part.parameters())


def first_number(config: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The first of these entries that is a number of 2 or more; those of a model with pictures lie one level deeper."""
    nested = config.get("text_config")
    for where in (config, nested if isinstance(nested, dict) else {}):
        for name in names:
            if type(where.get(name)) is int and where[name] >= 2:
                return where[name]
    return None


class Spelling:
    """The tokenizer's vocabulary, in bytes."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        backend = tokenizer.backend_tokenizer
        self._byte_level = is_byte_level(json.loads(backend.to_str()).get("decoder"))
        added = backend.get_added_tokens_decoder()
        self._added = {int(number): b"" if token.special else token.content.encode() for number, token in added.items()}

    def piece(self, token: int) -> bytes:
        """A model's vocabulary may be longer than its tokenizer's: a token past its end says nothing."""
        if token in self._added:
            return self._added[token]
        spelling = self._tokenizer.backend_tokenizer.id_to_token(token)
        return b"" if spelling is None else piece_of(spelling, byte_level=self._byte_level)

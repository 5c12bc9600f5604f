"""What a model needs in memory, from what its file says of itself. Pure.

Weights take the size of the file; each token of each sequence takes a key and a value in every layer, two bytes a
number as both backends keep them. What a backend takes for its buffers comes on top, and no file says how much. A
model that does not say its shape gets no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BYTES_A_NUMBER = 2  # float16 or bfloat16
GB = 1e9


@dataclass(frozen=True, slots=True)
class Appetite:
    """One model: bytes of its weights, bytes of a token's keys and values, tokens it was made for."""

    weights: int
    token: int | None = None
    context: int | None = None

    def needs(self, sequences: int, tokens: int) -> float | None:
        """GB (10^9 bytes) for so many sequences of so many tokens, buffers left out; None: it does not say."""
        return None if self.token is None else (self.weights + self.token * sequences * tokens) / GB


def of_gguf(meta: Mapping[str, Any], weights: int) -> Appetite:
    """From a GGUF's metadata."""
    arch = meta.get("general.architecture")

    def said(key: str) -> Any:
        return meta.get(f"{arch}.{key}")

    layers, heads = _whole(said("block_count")), said("attention.head_count")
    kv_heads = said("attention.head_count_kv") or heads
    most_heads = max(heads, default=None) if isinstance(heads, list) else _whole(heads)
    width = _whole(said("embedding_length"))
    each = width // most_heads if width and most_heads else None
    key, value = _whole(said("attention.key_length")) or each, _whole(said("attention.value_length")) or each
    token = None
    if layers and key and value:
        heads_in_all = _heads_in_all(kv_heads, layers)
        token = None if heads_in_all is None else heads_in_all * (key + value) * _BYTES_A_NUMBER
    return Appetite(weights, token, _whole(said("context_length")))


def of_config(config: Mapping[str, Any], weights: int) -> Appetite:
    """From an MLX model's config.json; of one that sees and reads, the part that writes."""
    inner = config.get("text_config")
    if isinstance(inner, dict):
        config = {**config, **inner}
    layers, heads = _whole(config.get("num_hidden_layers")), _whole(config.get("num_attention_heads"))
    width = _whole(config.get("hidden_size"))
    kv_heads = _whole(config.get("num_key_value_heads")) or heads
    each = _whole(config.get("head_dim")) or (width // heads if width and heads else None)
    token = layers * kv_heads * 2 * each * _BYTES_A_NUMBER if layers and kv_heads and each else None
    return Appetite(weights, token, _whole(config.get("max_position_embeddings")))


def _heads_in_all(kv_heads: Any, layers: int) -> int | None:
    """Of all layers together: a model says one number for all, or one for each."""
    if isinstance(kv_heads, list):
        return sum(kv_heads) if kv_heads and all(_whole(one) or one == 0 for one in kv_heads) else None
    heads = _whole(kv_heads)
    return None if heads is None else heads * layers


def _whole(value: Any) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40
    return value if usable else None

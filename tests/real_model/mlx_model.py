"""Model folders for MLX: the tests' GGUF file in MLX's form, and one of two layers that says nonsense at once.

Nothing of torch or of a download: mlx reads a GGUF file itself. What is left is names, the order in which llama.cpp
stores the rows of q and k, and the tokenizer.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

LAYER_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_CONTROL, _USER_DEFINED = 3, 4  # token types of a GGUF file
CHAT_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('unknown role') }}{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def convert(gguf: Path, folder: Path) -> Path:
    """The model in bfloat16: on Linux the fastest form, while 4-bit blocks with f16 scales take 35 times as long."""
    mx: Any = import_module("mlx.core")
    tensors, about = mx.load(str(gguf), return_metadata=True)
    told = {key: value.item() if getattr(value, "size", 0) == 1 else value for key, value in about.items()}
    assert (told["general.architecture"], told["tokenizer.ggml.model"]) == ("llama", "gpt2"), (
        "made for such files alone"
    )
    weights = {_name(key): _rows_in_halves(key, value, told) for key, value in tensors.items()}
    for name in [name for name in weights if name.endswith(".scales")]:
        base = name.removesuffix(".scales")
        packed, scales = weights[f"{base}.weight"], weights.pop(name).astype(mx.float32)
        biases = weights.pop(f"{base}.biases").astype(mx.float32)
        bits = packed.shape[1] // scales.shape[1]  # 32 bits a word, 32 weights a scale
        weights[f"{base}.weight"] = mx.dequantize(packed, scales, biases, group_size=32, bits=bits)
    folder.mkdir(parents=True)
    weights = {name: value.astype(mx.bfloat16) for name, value in weights.items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    _write(folder / "config.json", _config(told, tied="lm_head.weight" not in weights))
    _write_tokenizer(folder, told, about)
    return folder


def write_tiny(
    folder: Path,
    *,
    train: int = 2048,
    layers: int = 2,
    vocabulary: int = 264,
    window: int | None = None,
    template: str | None = CHAT_TEMPLATE,
) -> Path:
    """A random model of 32 numbers a token over single bytes: steps in a millisecond, for tests of what goes around it.

    `window`: its second layer sees only so many tokens back, and its cache cannot be cut back.
    """
    mx: Any = import_module("mlx.core")
    llama: Any = import_module("mlx_lm.models.llama")
    flatten = import_module("mlx.utils").tree_flatten
    mx.random.seed(7)
    config = {
        "model_type": "llama",
        "hidden_size": 32,
        "num_hidden_layers": layers,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
        "max_position_embeddings": train,
        "tie_word_embeddings": True,
        "eos_token_id": 257,
    }
    if window:
        kinds = ["full_attention", *["sliding_attention"] * (layers - 1)]
        config |= {"sliding_window": window, "layer_types": kinds}
    model = llama.Model(llama.ModelArgs.from_dict(config))
    folder.mkdir(parents=True)
    # Weights this large make a model that leaves the repetition which small random ones fall into.
    weights = {name: value * (1 if "norm" in name else 8) for name, value in flatten(model.parameters())}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    _write(folder / "config.json", config)
    _write(folder / "generation_config.json", {"eos_token_id": [256, 257]})
    _write_byte_tokenizer(folder, template)
    return folder


def _name(key: str) -> str:
    if not key.startswith("blk."):
        part, leaf = key.split(".")
        return f"{TOP_NAMES[part]}.{leaf}"
    _, layer, part, leaf = key.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{leaf}"


def _rows_in_halves(key: str, value: Any, told: dict[str, Any]) -> Any:
    """q and k: llama.cpp's rotation takes neighbouring rows, MLX's one of each half."""
    heads = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}
    count = next((told[heads[part]] for part in key.split(".") if part in heads), None)
    if count is None:
        return value
    return value.reshape(count, value.shape[0] // count // 2, 2, -1).swapaxes(1, 2).reshape(value.shape)


def _config(told: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": told["llama.embedding_length"],
        "num_hidden_layers": told["llama.block_count"],
        "intermediate_size": told["llama.feed_forward_length"],
        "num_attention_heads": told["llama.attention.head_count"],
        "num_key_value_heads": told["llama.attention.head_count_kv"],
        "rms_norm_eps": told["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": told["llama.rope.freq_base"],
        "max_position_embeddings": told["llama.context_length"],
        "vocab_size": told["llama.vocab_size"],
        "tie_word_embeddings": tied,
        "bos_token_id": told["tokenizer.ggml.bos_token_id"],
        "eos_token_id": told["tokenizer.ggml.eos_token_id"],
        "torch_dtype": "bfloat16",
    }


def _write_tokenizer(folder: Path, told: dict[str, Any], about: dict[str, Any]) -> None:
    hf: Any = import_module("tokenizers")
    words, types = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"].tolist()
    merges = [tuple(merge.split(" ", 1)) for merge in about["tokenizer.ggml.merges"]]
    tokenizer = hf.Tokenizer(hf.models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=merges))
    digits = [hf.pre_tokenizers.Digits(individual_digits=True)] if told["tokenizer.ggml.pre"] == "smollm" else []
    byte_level = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = hf.pre_tokenizers.Sequence([*digits, byte_level])
    tokenizer.decoder = hf.decoders.ByteLevel()
    for kind, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        found = [word for word, its in zip(words, types, strict=True) if its == kind]
        tokenizer.add_tokens([hf.AddedToken(word, special=special, normalized=False) for word in found])
    tokenizer.save(str(folder / "tokenizer.json"))
    ends = words[told["tokenizer.ggml.eos_token_id"]]
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": ends,
            "clean_up_tokenization_spaces": False,
            "model_max_length": told["llama.context_length"],
            "chat_template": told["tokenizer.chat_template"],
        },
    )


def _write_byte_tokenizer(folder: Path, template: str | None) -> None:
    hf: Any = import_module("tokenizers")
    alphabet = sorted(hf.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {spelled: number for number, spelled in enumerate(alphabet)}
    tokenizer = hf.Tokenizer(hf.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = hf.decoders.ByteLevel()
    control = ("<|endoftext|>", "<|im_end|>", "<|im_start|>")  # 256, 257, 258
    tokenizer.add_tokens([hf.AddedToken(word, special=True, normalized=False) for word in control])
    tokenizer.add_tokens([hf.AddedToken("<think>", special=False, normalized=False)])  # 259
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "model_max_length": 2048}
    _write(folder / "tokenizer_config.json", told | ({"chat_template": template} if template else {}))


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")

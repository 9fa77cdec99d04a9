"""A Llama target out of a directory in Hugging Face layout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.models.checkpoint import TargetCheckpoint
from engine.models.checkpoint_error import CheckpointError
from engine.models.hf_text import read_hf_text
from engine.models.json_file import read_json
from engine.models.rope_config import read_rope
from engine.models.safetensors_files import read_tensors
from engine.models.shapes import LlamaShape
from engine.models.tensor_check import check_dims, check_names, target_tensors

# setting -> the one value that this engine computes
_FIXED: dict[str, object] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "quantization_config": None,
    "sliding_window": None,
}


def load_hf_directory(directory: Path) -> TargetCheckpoint:
    """Load ``config.json``, ``*.safetensors``, ``tokenizer.json`` and, where there are any, generation config and chat
    template. Tensors keep the file's dtype.

    Raises:
        CheckpointError: a file is missing, another architecture, or tensors that are unknown, missing or misshapen.
    """
    source = str(directory)
    config = read_json(directory / "config.json")
    _check_architecture(source, config)
    text = read_hf_text(directory, config)
    tokenizer = text.tokenizer
    eos = tokenizer.eos_token_ids
    shape = _shape(source, config, eos)
    tensors = {}
    for stored_name, tensor in read_tensors(directory).items():
        name = stored_name.removeprefix("model.")
        if re.fullmatch(r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", name):
            continue  # a table that older writers stored; it is computed from config.json
        if name == "lm_head.weight" and shape.tie_embeddings:
            continue  # a copy of the embedding, by the config's word
        tensors[name] = tensor
    expected = target_tensors(shape)
    check_names(source, tensors, expected)
    dims = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    check_dims(source, dims, expected, "config.json and weights are not of the same model: copy both again.")
    for name, tensor in tensors.items():
        if not tensor.dtype.is_floating_point or tensor.element_size() < 2:
            raise CheckpointError(
                f"{source}: tensor {name} is of type {tensor.dtype}, expected 16, 32 or 64 bit floats. "
                "Use a copy of the model that is not quantized."
            )
    if tokenizer.vocab_size > shape.vocab_size:
        raise CheckpointError(
            f"{source}: tokenizer.json has {tokenizer.vocab_size} tokens, embed_tokens.weight {shape.vocab_size} rows. "
            "They are not of the same model: copy both again."
        )
    return TargetCheckpoint(
        name=directory.resolve().name,
        source=source,
        shape=shape,
        tensors=tensors,
        tokenizer=tokenizer,
        chat_template=text.chat_template,
        warnings=() if eos else (f"{source}: no end-of-text token is named: answers end at max_tokens only",),
    )


def _check_architecture(source: str, config: dict[str, Any]) -> None:
    names = config.get("architectures") or [config.get("model_type", "none named")]
    if names not in (["LlamaForCausalLM"], ["llama"]):
        raise CheckpointError(
            f"{source}: architecture {', '.join(map(str, names))}, expected LlamaForCausalLM. Other architectures do "
            "not run; use a Llama-architecture model."
        )
    for setting, expected in _FIXED.items():
        value = config.get(setting, expected)
        if value != expected:
            raise CheckpointError(
                f"{source}: config.json sets {setting} to {value!r}, expected {expected!r}: this variant of Llama is "
                "not supported. Use a model without it."
            )


def _shape(source: str, config: dict[str, Any], eos: tuple[int, ...]) -> LlamaShape:
    def number(key: str, default: int | None = None) -> int:
        value = config.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CheckpointError(f"{source}: config.json: {key} is {value!r}, expected a positive whole number.")
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    kv_heads = number("num_key_value_heads", heads)
    if heads % kv_heads:
        raise CheckpointError(
            f"{source}: config.json: num_attention_heads is {heads}, expected a multiple of "
            f"num_key_value_heads {kv_heads}."
        )
    theta, scaling = read_rope(source, config)
    return LlamaShape(
        hidden_size=hidden,
        num_layers=number("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=number("head_dim", hidden // heads),
        intermediate_size=number("intermediate_size"),
        vocab_size=number("vocab_size"),
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope_theta=theta,
        rope_scaling=scaling,
        max_position=number("max_position_embeddings", 2048),
        tie_embeddings=bool(config.get("tie_word_embeddings", False)),
        eos_token_ids=eos,
    )

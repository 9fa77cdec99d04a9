"""A Llama target out of a GGUF file: weights dequantized, tokenizer and chat template from the file's own fields."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import torch

from engine.models.checkpoint import TargetCheckpoint
from engine.models.checkpoint_error import CheckpointError
from engine.models.gguf_fields import Fields, read_chat_template, read_gguf
from engine.models.gguf_tokenizer import build_tokenizer
from engine.models.shapes import LlamaShape
from engine.models.tensor_check import check_dims, check_names, target_tensors

_OUTER = {
    "token_embd.weight": "embed_tokens.weight",
    "output_norm.weight": "norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def load_gguf(path: Path, *, name: str) -> TargetCheckpoint:
    """Read the whole file into float32 tensors.

    Raises:
        CheckpointError: no GGUF, another architecture than Llama, tensors that are unknown, missing or misshapen.
    """
    source = path.name
    reader = read_gguf(path)
    fields = Fields(source, reader)
    architecture = fields.text("general.architecture")
    if architecture != "llama":
        raise CheckpointError(f"{source}: architecture {architecture}, expected llama. Other architectures do not run.")
    stored = {_canonical(tensor.name): tensor for tensor in reader.tensors}
    tokenizer = build_tokenizer(fields)
    shape = _shape(fields, tokenizer.eos_token_ids, tied="lm_head.weight" not in stored)
    expected = target_tensors(shape)
    check_names(source, stored, expected)
    dims = {key: tuple(int(n) for n in reversed(tensor.shape)) for key, tensor in stored.items()}
    check_dims(source, dims, expected, "The file contradicts its own metadata: fetch it again.")
    tensors = {key: torch.from_numpy(_dequantize(stored[key], key, shape)) for key in expected}
    if tokenizer.vocab_size > shape.vocab_size:
        raise CheckpointError(
            f"{source}: tokenizer.ggml.tokens has {tokenizer.vocab_size} tokens, token_embd.weight {shape.vocab_size} "
            "rows: the file contradicts itself, fetch it again."
        )
    return TargetCheckpoint(
        name=name,
        source=source,
        shape=shape,
        tensors=tensors,
        tokenizer=tokenizer,
        chat_template=read_chat_template(fields),
    )


def _canonical(gguf_name: str) -> str:
    """Hugging Face name of a GGUF tensor; an unknown one keeps its name, to be refused by it."""
    if gguf_name in _OUTER:
        return _OUTER[gguf_name]
    match gguf_name.split("."):
        case ["blk", layer, part, "weight"] if part in _IN_LAYER:
            return f"layers.{layer}.{_IN_LAYER[part]}.weight"
    return gguf_name


def _shape(fields: Fields, eos: tuple[int, ...], *, tied: bool) -> LlamaShape:
    hidden = fields.number("llama.embedding_length")
    heads = fields.number("llama.attention.head_count")
    head_dim = int(fields.get("llama.attention.key_length", fields.get("llama.rope.dimension_count", hidden // heads)))
    return LlamaShape(
        hidden_size=hidden,
        num_layers=fields.number("llama.block_count"),
        num_heads=heads,
        num_kv_heads=int(fields.get("llama.attention.head_count_kv", heads)),
        head_dim=head_dim,
        intermediate_size=fields.number("llama.feed_forward_length"),
        vocab_size=int(fields.get("llama.vocab_size", 0)) or len(fields.strings("tokenizer.ggml.tokens")),
        # Stored as float32, where 1e-5 reads 9.99999974e-06: seven digits give back what was meant.
        rms_norm_eps=float(f"{float(fields.need('llama.attention.layer_norm_rms_epsilon')):.7g}"),
        rope_theta=float(fields.get("llama.rope.freq_base", 10000.0)),
        rope_scaling=_rope_scaling(fields),
        max_position=fields.number("llama.context_length"),
        tie_embeddings=tied,
        eos_token_ids=eos,
    )


def _rope_scaling(fields: Fields) -> dict[str, Any] | None:
    kind = fields.get("llama.rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": float(fields.need("llama.rope.scaling.factor"))}
    raise CheckpointError(
        f"{fields.source}: llama.rope.scaling.type is {kind}, expected none or linear. "
        "Use the model's safetensors directory, or another model."
    )


def _dequantize(tensor: gguf.ReaderTensor, key: str, shape: LlamaShape) -> npt.NDArray[np.float32]:
    """One tensor as float32 in its own memory, q and k rows in half-split rotary order."""
    stored = np.asarray(tensor.data)
    rows, *_ = dims = tuple(int(n) for n in reversed(tensor.shape))
    # The library works on 16 rows at a time; blocks do not span rows, so 16 rows laid end to end are as good as one,
    # and the time goes into arithmetic: four times as quick on rows of 576.
    joined = math.gcd(rows, 16) if len(dims) == 2 else 1
    flat = gguf.quants.dequantize(stored.reshape(stored.shape[0] // joined, -1), tensor.tensor_type)
    array = np.asarray(flat, dtype=np.float32).reshape(dims)
    for name, heads in (("q_proj.weight", shape.num_heads), ("k_proj.weight", shape.num_kv_heads)):
        if key.endswith(name):
            # GGUF interleaves each head's rotary pairs (0, 1), (2, 3), ...; here they are (0, d/2), (1, d/2 + 1), ...
            array = array.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(dims)
    # A tensor stored as float32 is a read-only view of the file until it is copied.
    return array if array.flags.writeable else np.array(array)

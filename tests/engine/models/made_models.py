"""Model directories and files, written from tiny random checkpoints in the formats that people have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import safetensors.torch
import torch

from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.gguf_checkpoint import _IN_LAYER, _OUTER


def write_hf(directory: Path, target: TargetCheckpoint, *, shards: int = 1, **config: Any) -> Path:
    """A Hugging Face directory; ``config`` overrides settings, None removes one."""
    directory.mkdir(parents=True, exist_ok=True)
    shape = target.shape
    settings = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate_size,
        "vocab_size": shape.vocab_size,
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": shape.max_position,
        "tie_word_embeddings": shape.tie_embeddings,
        "eos_token_id": 2,
        "hidden_act": "silu",
    } | config
    write_json(directory / "config.json", {key: value for key, value in settings.items() if value is not None})
    target.tokenizer._backend.save(str(directory / "tokenizer.json"))
    template = target.chat_template.source if target.chat_template else None
    write_json(directory / "tokenizer_config.json", {"eos_token": "<|im_end|>", "chat_template": template})
    stored = {_stored_name(name): tensor.contiguous() for name, tensor in target.tensors.items()}
    write_shards(directory, stored, shards)
    return directory


def write_shards(directory: Path, tensors: dict[str, torch.Tensor], shards: int) -> None:
    if shards == 1:
        safetensors.torch.save_file(tensors, directory / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for shard in range(shards):
        part = {name: tensor for index, (name, tensor) in enumerate(tensors.items()) if index % shards == shard}
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        safetensors.torch.save_file(part, directory / file)
        weight_map |= dict.fromkeys(part, file)
    write_json(directory / "model.safetensors.index.json", {"weight_map": weight_map})


def write_head(
    directory: Path,
    draft: DraftCheckpoint,
    *,
    layer: str = "midlayer.",
    tensors: dict[str, torch.Tensor | None] | None = None,
    **config: Any,
) -> Path:
    """An EAGLE-3 directory with offsets and t2d; ``tensors`` and ``config`` replace parts of it, None removes them."""
    directory.mkdir(parents=True, exist_ok=True)
    shape = draft.shape
    settings: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "hidden_size": shape.hidden_size,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": 1,
        "vocab_size": shape.vocab_size,
        "draft_vocab_size": shape.draft_vocab_size,
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": shape.rope_theta,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [layer - 1 for layer in shape.aux_layers]},
    } | config
    write_json(directory / "config.json", {key: value for key, value in settings.items() if value is not None})
    stored: dict[str, torch.Tensor | None] = {
        name.replace("layers.0.", layer): tensor.contiguous() for name, tensor in draft.tensors.items()
    }
    stored["d2t"] = draft.draft_to_target - torch.arange(shape.draft_vocab_size)
    t2d = torch.zeros(shape.vocab_size, dtype=torch.bool)
    t2d[draft.draft_to_target] = True
    stored["t2d"] = t2d
    stored |= tensors or {}
    kept = {name: tensor for name, tensor in stored.items() if tensor is not None}
    safetensors.torch.save_file(kept, directory / "model.safetensors")
    return directory


def write_gguf(
    path: Path,
    target: TargetCheckpoint,
    *,
    architecture: str = "llama",
    tensors: dict[str, torch.Tensor | None] | None = None,
    quantized: bool = False,
    pre: str = "gpt-2",
    kind: str = "gpt2",
) -> Path:
    """A GGUF as converters write it: q and k rows interleaved. ``quantized``: matrices as Q8_0."""
    shape, backend = target.shape, target.tokenizer._backend
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_context_length(shape.max_position)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.num_layers)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_vocab_size(shape.vocab_size)
    model = json.loads(backend.to_str())["model"]
    tokens = [backend.id_to_token(index) or "" for index in range(target.tokenizer.vocab_size)]
    special = target.tokenizer.special_token_ids
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if index in special else 1 for index in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_eos_token_id(2)
    if target.chat_template is not None:
        writer.add_chat_template(target.chat_template.source)
    stored: dict[str, torch.Tensor | None] = {}
    for name, tensor in target.tensors.items():
        heads = {"q_proj": shape.num_heads, "k_proj": shape.num_kv_heads}.get(name.split(".")[-2])
        if heads is not None:
            tensor = tensor.unflatten(0, (heads, 2, shape.head_dim // 2)).transpose(1, 2).flatten(0, 2)
        stored[_gguf_name(name)] = tensor
    for name, replaced in (stored | (tensors or {})).items():
        if replaced is None:
            continue
        array = replaced.float().contiguous().numpy()
        if quantized and array.ndim == 2:
            q8 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(array, q8), raw_dtype=q8)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _stored_name(name: str) -> str:
    return name if name == "lm_head.weight" else f"model.{name}"


def _gguf_name(name: str) -> str:
    outer = {canonical: stored for stored, canonical in _OUTER.items()}
    if name in outer:
        return outer[name]
    _, layer, part = name.removesuffix(".weight").split(".", 2)
    in_layer = {canonical: stored for stored, canonical in _IN_LAYER.items()}
    return f"blk.{layer}.{in_layer[part]}.weight"

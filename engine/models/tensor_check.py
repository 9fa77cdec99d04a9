"""Do the tensors in a file fit the numbers that describe the model? Nothing is loaded past a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.models.checkpoint_error import CheckpointError
from engine.models.shapes import Eagle3Shape, LlamaShape

Dims = tuple[int, ...]


def target_tensors(shape: LlamaShape) -> dict[str, Dims]:
    """Name -> dims of every tensor of a Llama target, Hugging Face names without the leading ``model.``."""
    hidden, head = shape.hidden_size, shape.head_dim
    tensors: dict[str, Dims] = {"embed_tokens.weight": (shape.vocab_size, hidden)}
    for layer in range(shape.num_layers):
        prefix = f"layers.{layer}."
        tensors |= {
            f"{prefix}input_layernorm.weight": (hidden,),
            f"{prefix}self_attn.q_proj.weight": (shape.num_heads * head, hidden),
            f"{prefix}self_attn.k_proj.weight": (shape.num_kv_heads * head, hidden),
            f"{prefix}self_attn.v_proj.weight": (shape.num_kv_heads * head, hidden),
            f"{prefix}self_attn.o_proj.weight": (hidden, shape.num_heads * head),
            f"{prefix}post_attention_layernorm.weight": (hidden,),
            f"{prefix}mlp.gate_proj.weight": (shape.intermediate_size, hidden),
            f"{prefix}mlp.up_proj.weight": (shape.intermediate_size, hidden),
            f"{prefix}mlp.down_proj.weight": (hidden, shape.intermediate_size),
        }
    tensors["norm.weight"] = (hidden,)
    if not shape.tie_embeddings:
        tensors["lm_head.weight"] = (shape.vocab_size, hidden)
    return tensors


def parameters_of(tensors: Mapping[str, Dims]) -> int:
    """Numbers in all of them."""
    return sum(math.prod(dims) for dims in tensors.values())


def draft_tensors(shape: Eagle3Shape, *, own_embedding: bool) -> dict[str, Dims]:
    """Name -> dims of every tensor of a one-layer EAGLE-3 head, id maps apart."""
    hidden, head = shape.hidden_size, shape.head_dim
    tensors: dict[str, Dims] = {
        "fc.weight": (hidden, len(shape.aux_layers) * shape.target_hidden_size),
        "layers.0.input_layernorm.weight": (hidden,),
        "layers.0.hidden_norm.weight": (hidden,),
        "layers.0.self_attn.q_proj.weight": (shape.num_heads * head, 2 * hidden),
        "layers.0.self_attn.k_proj.weight": (shape.num_kv_heads * head, 2 * hidden),
        "layers.0.self_attn.v_proj.weight": (shape.num_kv_heads * head, 2 * hidden),
        "layers.0.self_attn.o_proj.weight": (hidden, shape.num_heads * head),
        "layers.0.post_attention_layernorm.weight": (hidden,),
        "layers.0.mlp.gate_proj.weight": (shape.intermediate_size, hidden),
        "layers.0.mlp.up_proj.weight": (shape.intermediate_size, hidden),
        "layers.0.mlp.down_proj.weight": (hidden, shape.intermediate_size),
        "norm.weight": (hidden,),
        "lm_head.weight": (shape.draft_vocab_size, hidden),
    }
    if own_embedding:
        tensors["embed_tokens.weight"] = (shape.vocab_size, hidden)
    return tensors


def check_names(source: str, found: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Refuse tensors that are missing, and tensors that nobody would read.

    Raises:
        CheckpointError: naming them (the first eight, and how many more).
    """
    missing = [name for name in expected if name not in found]
    unknown = [name for name in found if name not in expected]
    if not missing and not unknown:
        return
    parts = []
    if missing:
        parts.append(f"missing tensors {_listed(missing)}")
    if unknown:
        parts.append(f"tensors that this architecture does not have: {_listed(unknown)}")
    raise CheckpointError(
        f"{source}: {'; '.join(parts)}. Expected exactly the tensors of the architecture in its config; "
        "check that all files of the checkpoint are there and that it is a plain Llama or EAGLE-3 one."
    )


def check_dims(source: str, found: Mapping[str, Dims], expected: Mapping[str, Dims], advice: str) -> None:
    """Refuse the first tensor whose shape differs.

    Raises:
        CheckpointError: naming it and both shapes.
    """
    for name, dims in expected.items():
        if name in found and found[name] != dims:
            raise misfit(source, name, found[name], list(dims), advice)


def misfit(source: str, name: str, found: Dims, expected: object, advice: str) -> CheckpointError:
    """The error for one tensor of the wrong shape."""
    return CheckpointError(f"{source}: tensor {name}: found shape {list(found)}, expected {expected}. {advice}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"

"""An EAGLE-3 head out of a directory, in any of the namings that are in use.

A head that is loaded wrongly does not crash, it just has nothing accepted; so all that is not understood is refused.

Which residual streams the head reads: ``Eagle3Shape.aux_layers`` are boundaries, a layer's number meaning the stream
that *enters* it. Files say it in two ways. ``eagle_aux_hidden_state_layer_ids`` (SafeAILab, SpecForge, NVIDIA, and
SGLang, which runs them) names the layer whose *output* is read: one is added. ``aux_hidden_state_layer_ids``, and the
``eagle_aux_`` key inside a speculators config (what vLLM writes and takes literally), name boundaries already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from torch import Tensor

from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.checkpoint_error import CheckpointError
from engine.models.draft_vocabulary import read_draft_vocabulary
from engine.models.json_file import read_json
from engine.models.rope_config import read_rope
from engine.models.safetensors_files import read_tensors
from engine.models.shapes import Eagle3Shape, default_aux_layers
from engine.models.tensor_check import Dims, check_dims, check_names, draft_tensors, misfit
from engine.text.tokenizer import Tokenizer

_FITS = "Use a head that was trained for this target."

# flag -> the one value that this engine computes; another value is another network.
_FIXED_FLAGS: dict[str, object] = {
    "norm_before_fc": False,
    "fc_norm": False,
    "norm_output": False,
    "use_aux_hidden_state": True,
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
    "attention_bias": False,
    "mlp_bias": False,
    "hidden_act": "silu",
    "parallel_draft_step": 1,
    "parallel_drafting": False,
}
_EAGLE_FLAGS = {*_FIXED_FLAGS, "eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "norm_before_residual"}


def load_eagle3_directory(directory: Path, target: TargetCheckpoint, *, name: str | None = None) -> DraftCheckpoint:
    """Load and check a head against its target; sizes come from the tensors, the config is a cross-check.

    Raises:
        CheckpointError: whatever does not fit, with the tensor or flag and both values.
    """
    source = str(directory) if name is None else name
    config = _Config(source, read_json(directory / "config.json"))
    config.refuse_variants()
    tensors = {_canonical(key): tensor for key, tensor in read_tensors(directory).items()}
    _refuse_more_layers(source, tensors)
    d2t, t2d = tensors.pop("d2t", None), tensors.pop("t2d", None)
    dims: dict[str, Dims] = {key: tuple(tensor.shape) for key, tensor in tensors.items()}
    _check_vocabulary(source, config, dims, t2d, target)
    shape = _shape(config, dims, target)
    expected = draft_tensors(shape, own_embedding="embed_tokens.weight" in tensors)
    check_names(source, tensors, expected)
    check_dims(source, dims, expected, _FITS)
    if "embed_tokens.weight" not in tensors and shape.hidden_size != target.shape.hidden_size:
        raise CheckpointError(
            f"{source}: no embed_tokens.weight, and the target's embedding has {target.shape.hidden_size} columns "
            f"where the head needs {shape.hidden_size}. {_FITS}"
        )
    draft_to_target = read_draft_vocabulary(source, d2t, t2d, shape.draft_vocab_size, target.shape.vocab_size)
    _check_tokenizer(source, directory, target.tokenizer)
    return DraftCheckpoint(
        name=name or directory.name,
        source=source,
        shape=shape,
        tensors=tensors,
        draft_to_target=draft_to_target,
        warnings=(*config.unknown_flags(), *config.disagreements(shape)),
    )


class _Config:
    """A head's config.json with its nested parts laid flat: outermost wins."""

    def __init__(self, source: str, raw: Mapping[str, Any]) -> None:
        self.source = source
        nested = [
            part for key in ("eagle_config", "transformer_layer_config") if isinstance(part := raw.get(key), dict)
        ]
        self._eagle: Mapping[str, Any] = raw.get("eagle_config") or {}
        self._is_speculators = "speculators_config" in raw or "speculators_model_type" in raw
        self.values: dict[str, Any] = {}
        for part in (*reversed(nested), raw):
            self.values |= {key: value for key, value in part.items() if value is not None}

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None or (isinstance(value, int) and value > 0):
            return value
        raise CheckpointError(f"{self.source}: config.json: {key} is {value!r}, expected a positive whole number.")

    def refuse_variants(self) -> None:
        for flag, expected in _FIXED_FLAGS.items():
            value = self.values.get(flag, expected)
            if value != expected:
                raise CheckpointError(
                    f"{self.source}: config.json sets {flag} to {value!r}, expected {expected!r}: this variant of "
                    "EAGLE-3 is not supported. Use a head without it."
                )

    def unknown_flags(self) -> list[str]:
        """B25: a flag that nobody reads may change the network."""
        unknown = [key for key, value in self._eagle.items() if key not in _EAGLE_FLAGS and value not in (None, False)]
        return [f"draft head: config.json sets eagle_config.{key}, unknown here and ignored" for key in unknown]

    def disagreements(self, shape: Eagle3Shape) -> list[str]:
        """Settings that the tensors contradict without a doubt about which is right."""
        facts = {
            "num_hidden_layers": 1,
            "draft_vocab_size": shape.draft_vocab_size,
            "intermediate_size": shape.intermediate_size,
        }
        return [
            f"draft head: config.json says {key} {self.values[key]}, the tensors {fact}; the tensors are right"
            for key, fact in facts.items()
            if self.values.get(key, fact) != fact
        ]

    def boundaries(self, count: int, num_layers: int) -> tuple[int, ...]:
        """The ``count`` residual streams that fc reads, as boundaries of the target's layers."""
        literal = self.values.get("aux_hidden_state_layer_ids")
        outputs = self.values.get("eagle_aux_hidden_state_layer_ids")
        if literal:
            key, ids, shift = "aux_hidden_state_layer_ids", literal, 0
        elif outputs:
            key, ids, shift = "eagle_aux_hidden_state_layer_ids", outputs, 0 if self._is_speculators else 1
        else:
            key, ids, shift = "the default layers of EAGLE-3", default_aux_layers(num_layers), 0
        if len(ids) != count:
            raise CheckpointError(
                f"{self.source}: fc.weight reads {count} hidden states, but {key} are {list(ids)}. "
                "Name one layer for each in eagle_aux_hidden_state_layer_ids."
            )
        wanted = tuple(index + shift if isinstance(index, int) else -1 for index in ids)
        if not all(0 <= boundary <= num_layers for boundary in wanted):
            raise CheckpointError(
                f"{self.source}: {key} are {list(ids)}, expected layers of a target that has {num_layers}. {_FITS}"
            )
        return wanted


def _canonical(name: str) -> str:
    name = name.removeprefix("model.")
    name = re.sub(r"^midlayer\.(\d+)\.", r"layers.\1.", name)
    name = re.sub(r"^midlayer\.", "layers.0.", name)
    return "d2t" if name == "draft_id_to_target_id" else name


def _refuse_more_layers(source: str, tensors: Mapping[str, Tensor]) -> None:
    layers = sorted({int(match[1]) for key in tensors if (match := re.match(r"layers\.(\d+)\.", key))})
    if len(layers) > 1:
        raise CheckpointError(
            f"{source}: a head of {len(layers)} layers (tensors layers.0.* to layers.{layers[-1]}.*), expected one. "
            "Keeping a deeper head in step with plain decoding is not supported; use a one-layer head."
        )


def _check_vocabulary(
    source: str, config: _Config, dims: Mapping[str, Dims], t2d: Tensor | None, target: TargetCheckpoint
) -> None:
    """B23: a head for another vocabulary drafts nonsense; say both sizes."""
    vocabulary = target.shape.vocab_size
    sizes = {
        "tensor t2d": t2d.numel() if t2d is not None else None,
        "tensor embed_tokens.weight": dims.get("embed_tokens.weight", (None,))[0],
        "config.json": config.number("vocab_size"),
    }
    for where, size in sizes.items():
        if size is not None and size != vocabulary:
            raise CheckpointError(
                f"{source}: made for a vocabulary of {size} ({where}), the target {target.name} has "
                f"{vocabulary}. {_FITS}"
            )


def _shape(config: _Config, dims: Mapping[str, Dims], target: TargetCheckpoint) -> Eagle3Shape:
    def of(name: str) -> Dims:
        if name not in dims:
            raise CheckpointError(
                f"{config.source}: missing tensor {name}, which every EAGLE-3 head has "
                f"(found {', '.join(sorted(dims)[:8])}). Check that this directory is an EAGLE-3 head."
            )
        if len(dims[name]) != 2:
            raise misfit(config.source, name, dims[name], "two dimensions", _FITS)
        return dims[name]

    wide = target.shape.hidden_size
    hidden, reads = of("fc.weight")
    if reads % wide or not reads:
        raise misfit(
            config.source, "fc.weight", (hidden, reads), f"[{hidden}, n x {wide}] (target {target.name})", _FITS
        )
    q, k = of("layers.0.self_attn.q_proj.weight"), of("layers.0.self_attn.k_proj.weight")
    heads = config.number("num_attention_heads") or target.shape.num_heads
    if q[0] % heads:
        raise misfit(config.source, "layers.0.self_attn.q_proj.weight", q, f"rows for {heads} heads", _FITS)
    head_dim = q[0] // heads
    stated_dim = config.number("head_dim") or head_dim
    stated_kv = config.number("num_key_value_heads") or k[0] // head_dim
    if (heads * stated_dim, stated_kv * head_dim) != (q[0], k[0]):
        raise CheckpointError(
            f"{config.source}: config.json says {heads} heads of {stated_dim}, {stated_kv} for keys and values; "
            f"tensors q_proj {list(q)} and k_proj {list(k)} do not have these rows. Correct config.json, or fetch the "
            "head again."
        )
    theta, scaling = read_rope(config.source, config.values)
    return Eagle3Shape(
        hidden_size=hidden,
        target_hidden_size=wide,
        num_heads=heads,
        num_kv_heads=stated_kv,
        head_dim=head_dim,
        intermediate_size=of("layers.0.mlp.gate_proj.weight")[0],
        vocab_size=target.shape.vocab_size,
        draft_vocab_size=of("lm_head.weight")[0],
        aux_layers=config.boundaries(reads // wide, target.shape.num_layers),
        rms_norm_eps=float(config.values.get("rms_norm_eps", 1e-6)),
        rope_theta=theta,
        rope_scaling=scaling,
        max_position=target.shape.max_position,
        norm_before_residual=bool(config.values.get("norm_before_residual", False)),
    )


def _check_tokenizer(source: str, directory: Path, target: Tokenizer) -> None:
    """B23: where the head brings a tokenizer, each id must mean the same as in the target's."""
    path = directory / "tokenizer.json"
    if not path.is_file():
        return
    try:
        own = Tokenizer(tokenizers.Tokenizer.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{path}: cannot be read ({error}). Fetch it again.") from error
    difference = target.first_difference(own)
    if difference is not None:
        token_id, theirs, here = difference
        raise CheckpointError(
            f"{source}: its tokenizer differs from the target's: token {token_id} is {here!r} in the head, {theirs!r} "
            f"in the target. {_FITS}"
        )

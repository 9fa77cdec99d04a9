"""Tiny models with random weights and a real tokenizer: to test the engine, and to try a server within a second."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.models import catalog
from engine.models.byte_tokenizer import CHAT_TEMPLATE, EOS_ID, TINY_VOCAB, byte_tokenizer
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.shapes import Eagle3Shape, LlamaShape
from engine.models.tensor_check import Dims, draft_tensors, target_tensors
from engine.text.chat_template import ChatTemplate

LOGIT_SPREAD = 2.5
"""Standard deviation of the logits: the likeliest token near 0.1 to 0.5, so that sampling is not trivial."""


def tiny_shape(*, vocab_size: int = TINY_VOCAB, num_layers: int = 4) -> LlamaShape:
    """Hidden 64, 4 heads of 16 (2 for keys and values), embeddings not tied."""
    return LlamaShape(
        hidden_size=64,
        num_layers=num_layers,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        intermediate_size=128,
        vocab_size=vocab_size,
        max_position=4096,
        tie_embeddings=False,
        eos_token_ids=(EOS_ID,),
    )


def random_target(
    seed: int, shape: LlamaShape | None = None, dtype: torch.dtype = torch.float64, *, name: str = "random"
) -> TargetCheckpoint:
    """A target whose weights are the same for a seed whatever the dtype, up to rounding."""
    shape = shape or tiny_shape()
    generator = torch.Generator().manual_seed(seed)
    tensors = {key: _random_weight(key, dims, generator).to(dtype) for key, dims in target_tensors(shape).items()}
    if shape.tie_embeddings:
        tensors["embed_tokens.weight"] *= LOGIT_SPREAD / math.sqrt(shape.hidden_size)
    return TargetCheckpoint(
        name=name,
        source=f"random weights, seed {seed}",
        shape=shape,
        tensors=tensors,
        tokenizer=byte_tokenizer(shape.vocab_size, shape.eos_token_ids),
        chat_template=ChatTemplate(CHAT_TEMPLATE),
    )


def random_draft(
    seed: int, target: TargetCheckpoint, *, draft_vocab_size: int | None = None, name: str = "random-eagle3"
) -> DraftCheckpoint:
    """A head of the target's sizes and dtype; by default it knows half of the vocabulary."""
    wide = target.shape
    drafted = draft_vocab_size or max(wide.vocab_size // 2, 1)
    layers = wide.num_layers
    shape = Eagle3Shape(
        hidden_size=wide.hidden_size,
        target_hidden_size=wide.hidden_size,
        num_heads=wide.num_heads,
        num_kv_heads=wide.num_kv_heads,
        head_dim=wide.head_dim,
        intermediate_size=wide.intermediate_size,
        vocab_size=wide.vocab_size,
        draft_vocab_size=drafted,
        aux_layers=(min(1, layers), layers // 2, max(layers - 1, 0)),
        rms_norm_eps=wide.rms_norm_eps,
        rope_theta=wide.rope_theta,
        max_position=wide.max_position,
    )
    generator = torch.Generator().manual_seed(seed)
    dtype = target.tensors["norm.weight"].dtype
    tensors = {
        key: _random_weight(key, dims, generator).to(dtype)
        for key, dims in draft_tensors(shape, own_embedding=False).items()
    }
    return DraftCheckpoint(
        name=name,
        source=f"random weights, seed {seed}",
        shape=shape,
        tensors=tensors,
        draft_to_target=torch.randperm(wide.vocab_size, generator=generator)[:drafted].sort().values,
    )


def built_in_random_target(model: catalog.RandomModel) -> TargetCheckpoint:
    """The named tiny model, in float32; its name says that it is random wherever it is shown."""
    return random_target(model.seed, dtype=torch.float32, name=model.title)


def built_in_random_draft(head: catalog.RandomHead, target: TargetCheckpoint) -> DraftCheckpoint:
    """A random head for whichever target it is asked for."""
    return random_draft(head.seed, target, name=head.name)


def _random_weight(name: str, dims: Dims, generator: torch.Generator) -> Tensor:
    """float64; scaled so that every layer adds a noticeable part to the residual stream."""
    noise = torch.randn(dims, generator=generator, dtype=torch.float64)
    if len(dims) == 1:
        return 1.0 + 0.1 * noise  # a norm's weight: near one, but wrong if left out
    if name == "embed_tokens.weight":
        return noise
    scale = LOGIT_SPREAD if name == "lm_head.weight" else 1.0
    return noise * (scale / math.sqrt(dims[1]))

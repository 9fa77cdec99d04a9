"""The target model: Llama architecture over a flat batch of tokens and a paged KV pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.attention.dense import AttentionPlan
from engine.kv.pool import KvPool
from engine.models.linear import Arithmetic, Linear
from engine.models.rotary import interleave_rows, rotate, rotation_table
from engine.models.shapes import LlamaShape

ROPE_MARGIN = 256
"""Positions past the longest request that a verify tree may still touch."""


@dataclass(frozen=True)
class ForwardBatch:
    """One step's tokens, flat: the rows of each request one behind the other."""

    input_ids: torch.Tensor  # int64 [N]
    positions: torch.Tensor  # int64 [N]
    out_cache_loc: torch.Tensor  # int64 [N], the slot each row's K and V go to
    attention: AttentionPlan
    logit_rows: torch.Tensor | None  # int64 [M], rows to compute logits for; None is all
    capture_aux: bool  # keep the hidden states that the draft head reads


@dataclass(frozen=True)
class ForwardOutput:
    logits: torch.Tensor  # [M, vocab], in the activations' dtype
    aux: torch.Tensor | None  # [N, n_aux * hidden], in the activations' dtype


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) * weight (arXiv 1910.07467), computed in float32 or wider.

    By way of the vector's length, sqrt(n * (mean(x^2) + eps)) = hypot(|x|, sqrt(n * eps)): half the kernels of torch's
    own, and at a single row a step is made of kernel calls.
    """

    def __init__(self, weight: torch.Tensor, eps: float, arithmetic: Arithmetic) -> None:
        size = weight.shape[0]
        self._wide = arithmetic.wide
        self._out = arithmetic.activations
        self._floor = torch.tensor((size * eps) ** 0.5, dtype=self._wide)
        self._scaled = weight.to(arithmetic.activations).to(self._wide) * size**0.5

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]"""
        return self.direction(x).mul_(self._scaled).to(self._out)

    def direction(self, x: torch.Tensor) -> torch.Tensor:
        """x over its length, in the wide dtype: the norm less its weight and sqrt(n). [N, hidden] -> [N, hidden]"""
        x = x.to(self._wide)
        unit: torch.Tensor = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).hypot_(self._floor)
        return unit


class NormedLinear:
    """RMS norm and the product behind it.

    In float32 and float64 the norm's weight is part of the product's, which saves two kernels more. In bfloat16 it
    stays apart, and so the rounding is the one that models are trained in.
    """

    def __init__(self, norm: torch.Tensor, weight: torch.Tensor, eps: float, arithmetic: Arithmetic) -> None:
        self._norm = RmsNorm(norm, eps, arithmetic)
        self._folded = arithmetic.activations == arithmetic.wide
        if self._folded:
            weight = weight.to(arithmetic.wide) * (norm.to(arithmetic.wide) * norm.shape[0] ** 0.5)
        self._linear = Linear(weight, arithmetic)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, in] -> [N, out]"""
        return self._linear(self._norm.direction(x) if self._folded else self._norm(x))


class Mlp:
    """Norm and gated SiLU MLP, residual included: x + down(silu(gate(norm(x))) * up(norm(x)))."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], layer: str, eps: float, arithmetic: Arithmetic) -> None:
        gate, up = tensors[f"{layer}.mlp.gate_proj.weight"], tensors[f"{layer}.mlp.up_proj.weight"]
        norm = tensors[f"{layer}.post_attention_layernorm.weight"]
        self._gate_up = NormedLinear(norm, torch.cat([gate, up]), eps, arithmetic)
        self._down = Linear(tensors[f"{layer}.mlp.down_proj.weight"], arithmetic)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self._gate_up(x).chunk(2, dim=-1)  # [N, intermediate] each
        return self._down.plus(F.silu(gate).mul_(up), x)


class _Layer:
    def __init__(self, tensors: Mapping[str, torch.Tensor], index: int, shape: LlamaShape, arith: Arithmetic) -> None:
        layer, eps = f"layers.{index}", shape.rms_norm_eps
        q = interleave_rows(tensors[f"{layer}.self_attn.q_proj.weight"], shape.head_dim)
        k = interleave_rows(tensors[f"{layer}.self_attn.k_proj.weight"], shape.head_dim)
        v = tensors[f"{layer}.self_attn.v_proj.weight"]
        self.qkv = NormedLinear(tensors[f"{layer}.input_layernorm.weight"], torch.cat([q, k, v]), eps, arith)
        self.o = Linear(tensors[f"{layer}.self_attn.o_proj.weight"], arith)
        self.mlp = Mlp(tensors, layer, eps, arith)


class LlamaModel:
    """Weights and forward of a Llama-architecture target."""

    def __init__(
        self, shape: LlamaShape, tensors: Mapping[str, torch.Tensor], arithmetic: Arithmetic, max_model_len: int
    ) -> None:
        self.shape = shape
        self.arithmetic = arithmetic
        self._layers = [_Layer(tensors, i, shape, arithmetic) for i in range(shape.num_layers)]
        self.embedding = tensors["embed_tokens.weight"].to(arithmetic.activations)
        head = tensors["embed_tokens.weight"] if shape.tie_embeddings else tensors["lm_head.weight"]
        self._lm_head = NormedLinear(tensors["norm.weight"], head, shape.rms_norm_eps, arithmetic)
        self._rotation = rotation_table(
            shape.head_dim, max_model_len + ROPE_MARGIN, shape.rope_theta, shape.rope_scaling, arithmetic.wide
        )

    def make_pool(self, slots: int) -> KvPool:
        shape = self.shape
        return KvPool(shape.num_layers, shape.num_kv_heads, slots, shape.head_dim, self.arithmetic.activations)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, pool: KvPool, aux_layers: Sequence[int] = ()) -> ForwardOutput:
        """Run the target over one flat batch; K and V of every row go to the pool.

        ``aux_layers``: boundaries whose entering residual stream is kept (EAGLE-3, arXiv 2503.01840, section 3.1).
        """
        shape = self.shape
        n = batch.input_ids.numel()
        rotated = shape.num_heads + shape.num_kv_heads
        rotation = self._rotation[batch.positions][:, None]  # [N, 1, head_dim / 2]
        x = self.embedding[batch.input_ids]  # [N, hidden], the residual stream
        entering: dict[int, torch.Tensor] = {}  # boundary -> the residual stream there
        for index, layer in enumerate(self._layers):
            if batch.capture_aux and index in aux_layers:
                entering[index] = x
            qkv = layer.qkv(x).view(n, rotated + shape.num_kv_heads, shape.head_dim)
            rotate(qkv[:, :rotated], rotation)
            pool.write(index, batch.out_cache_loc, qkv[:, shape.num_heads :])
            attended = batch.attention.run(index, qkv[:, : shape.num_heads], pool)  # [N, q_size]
            x = layer.mlp(layer.o.plus(attended, x))
        if batch.capture_aux and shape.num_layers in aux_layers:
            entering[shape.num_layers] = x
        aux = torch.cat([entering[boundary] for boundary in aux_layers], dim=1) if batch.capture_aux else None
        if batch.logit_rows is not None:
            x = x[batch.logit_rows]
        if not x.shape[0]:  # a chunk that finishes no prompt
            return ForwardOutput(x.new_empty(0, shape.vocab_size), aux)
        logits = self._lm_head(x)
        return ForwardOutput(logits, aux)

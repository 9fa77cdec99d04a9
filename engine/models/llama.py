"""The target model: Llama architecture over a flat batch of tokens and a paged KV pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.attention.dense import AttentionPlan
from engine.kv.pool import KvPool
from engine.models.linear import Arithmetic, make_linear
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


class Mlp:
    """Gated SiLU MLP: down(silu(gate(x)) * up(x))."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], prefix: str, arithmetic: Arithmetic) -> None:
        gate, up = tensors[f"{prefix}.gate_proj.weight"], tensors[f"{prefix}.up_proj.weight"]
        self._gate_up = make_linear(torch.cat([gate, up]), arithmetic)
        self._down = make_linear(tensors[f"{prefix}.down_proj.weight"], arithmetic)
        self._width = gate.shape[0]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        both = self._gate_up(x)  # [N, 2 * intermediate]
        return self._down(F.silu(both[:, : self._width]).mul_(both[:, self._width :]))


class RmsNorm:
    """x / sqrt(mean(x^2) + eps) * weight (arXiv 1910.07467), computed in float32 or wider.

    In float32 and float64 by way of the vector's length, sqrt(n * (mean(x^2) + eps)) = hypot(|x|, sqrt(n * eps)): four
    kernels where torch's own takes eight, and at a single row a step is made of kernel calls.
    """

    def __init__(self, weight: torch.Tensor, eps: float, arithmetic: Arithmetic) -> None:
        self._weight = weight.to(arithmetic.activations)
        self._eps = eps
        self._size = (weight.shape[0],)
        self._by_length = arithmetic.activations == arithmetic.wide
        self._floor = torch.tensor((weight.shape[0] * eps) ** 0.5, dtype=arithmetic.wide)
        self._scaled = self._weight * weight.shape[0] ** 0.5

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]"""
        if not self._by_length:
            return F.rms_norm(x, self._size, self._weight, self._eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        normed: torch.Tensor = (x / length.hypot_(self._floor)).mul_(self._scaled)
        return normed


class _Layer:
    def __init__(self, tensors: Mapping[str, torch.Tensor], index: int, shape: LlamaShape, arith: Arithmetic) -> None:
        prefix = f"layers.{index}"
        attn = f"{prefix}.self_attn"
        q = interleave_rows(tensors[f"{attn}.q_proj.weight"], shape.head_dim)
        k = interleave_rows(tensors[f"{attn}.k_proj.weight"], shape.head_dim)
        self.qkv = make_linear(torch.cat([q, k, tensors[f"{attn}.v_proj.weight"]]), arith)
        self.o = make_linear(tensors[f"{attn}.o_proj.weight"], arith)
        self.mlp = Mlp(tensors, f"{prefix}.mlp", arith)
        self.input_norm = RmsNorm(tensors[f"{prefix}.input_layernorm.weight"], shape.rms_norm_eps, arith)
        self.post_norm = RmsNorm(tensors[f"{prefix}.post_attention_layernorm.weight"], shape.rms_norm_eps, arith)


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
        self._lm_head = make_linear(head, arithmetic)
        self._norm = RmsNorm(tensors["norm.weight"], shape.rms_norm_eps, arithmetic)
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
        q_size = shape.num_heads * shape.head_dim
        rotated = shape.num_heads + shape.num_kv_heads
        rotation = self._rotation[batch.positions][:, None]  # [N, 1, head_dim / 2]
        x = self.embedding[batch.input_ids]  # [N, hidden], the residual stream
        entering: dict[int, torch.Tensor] = {}  # boundary -> the residual stream there
        for index, layer in enumerate(self._layers):
            if batch.capture_aux and index in aux_layers:
                entering[index] = x.clone()
            qkv = layer.qkv(layer.input_norm(x)).view(n, rotated + shape.num_kv_heads, shape.head_dim)
            rotate(qkv[:, :rotated], rotation)
            pool.write(index, batch.out_cache_loc, qkv[:, shape.num_heads :])
            attended = batch.attention.run(index, qkv[:, : shape.num_heads], pool)  # [N, q_size]
            x += layer.o(attended.view(n, q_size))
            x += layer.mlp(layer.post_norm(x))
        if batch.capture_aux and shape.num_layers in aux_layers:
            entering[shape.num_layers] = x.clone()
        aux = torch.cat([entering[boundary] for boundary in aux_layers], dim=1) if batch.capture_aux else None
        if batch.logit_rows is not None:
            x = x[batch.logit_rows]
        if not x.shape[0]:  # a chunk that finishes no prompt
            return ForwardOutput(x.new_empty(0, shape.vocab_size), aux)
        logits = self._lm_head(self._norm(x))
        return ForwardOutput(logits, aux)

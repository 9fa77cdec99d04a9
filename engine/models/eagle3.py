"""The EAGLE-3 draft head (arXiv 2503.01840, section 3): one decoder layer over the target's hidden states.

``g = fc(aux)``; the layer reads ``[input_norm(embedding(next token)), hidden_norm(g)]``, adds to ``g``, and its
*pre-norm* output is the next draft step's ``g``. Position t pairs the target's hidden states of token t with the
embedding of token t + 1.

K and V of a position depend only on the layer's input, so a committed position needs no attention, MLP or lm_head:
`write_kv` is all that keeps the draft's cache in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.attention.dense import AttentionPlan, additive_mask, fold_heads, unfold_heads
from engine.kv.pool import KvPool
from engine.models.linear import Arithmetic, Linear
from engine.models.llama import ROPE_MARGIN, Mlp, NormedLinear, RmsNorm
from engine.models.rotary import interleave_rows, rotate, rotation_table
from engine.models.shapes import Eagle3Shape


@dataclass(frozen=True)
class HeadInput:
    """What the layer reads at some positions."""

    pair: torch.Tensor  # [N, 2 * hidden]
    residual: torch.Tensor  # [N, hidden]


@dataclass(frozen=True)
class HeadOutput:
    logprobs: torch.Tensor  # float32 [N, draft_vocab]
    hidden: torch.Tensor  # [N, hidden], pre-norm: the g of the children


class NodeCache:
    """K and V of the tree nodes expanded so far in one step, beside the pool: they never cost a slot."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None  # [B, kv_heads, nodes, head_dim]
        self.values: torch.Tensor | None = None

    def append(self, kv: torch.Tensor, kv_heads: int) -> None:
        """kv [B, m, 2 * kv_heads, head_dim]"""
        k, v = kv.transpose(1, 2).split(kv_heads, dim=1)
        self.keys = k if self.keys is None else torch.cat([self.keys, k], dim=2)
        self.values = v if self.values is None else torch.cat([self.values, v], dim=2)


class Eagle3Head:
    """Weights and forward of a head of one layer."""

    def __init__(
        self,
        shape: Eagle3Shape,
        tensors: Mapping[str, torch.Tensor],
        draft_to_target: torch.Tensor,
        target_embedding: torch.Tensor,
        arithmetic: Arithmetic,
        max_model_len: int,
    ) -> None:
        self.shape = shape
        self.arithmetic = arithmetic
        self.draft_to_target = draft_to_target  # int64 [draft_vocab], absolute ids
        layer, attn, eps = "layers.0", "layers.0.self_attn", shape.rms_norm_eps
        own = tensors.get("embed_tokens.weight")
        self._embedding = target_embedding if own is None else own.to(arithmetic.activations)
        self._fc = Linear(tensors["fc.weight"], arithmetic)
        k = interleave_rows(tensors[f"{attn}.k_proj.weight"], shape.head_dim)
        self._kv = Linear(torch.cat([k, tensors[f"{attn}.v_proj.weight"]]), arithmetic)
        self._q = Linear(interleave_rows(tensors[f"{attn}.q_proj.weight"], shape.head_dim), arithmetic)
        self._o = Linear(tensors[f"{attn}.o_proj.weight"], arithmetic)
        self._mlp = Mlp(tensors, layer, eps, arithmetic)
        self._lm_head = NormedLinear(tensors["norm.weight"], tensors["lm_head.weight"], eps, arithmetic)
        self._input_norm = RmsNorm(tensors[f"{layer}.input_layernorm.weight"], eps, arithmetic)
        self._hidden_norm = RmsNorm(tensors[f"{layer}.hidden_norm.weight"], eps, arithmetic)
        self._rotation = rotation_table(
            shape.head_dim, max_model_len + ROPE_MARGIN, shape.rope_theta, shape.rope_scaling, arithmetic.wide
        )

    def make_pool(self, slots: int) -> KvPool:
        return KvPool(1, self.shape.num_kv_heads, slots, self.shape.head_dim, self.arithmetic.activations)

    def fuse(self, aux: torch.Tensor) -> torch.Tensor:
        """The target's hidden states of some tokens, [N, n_aux * target hidden] -> g [N, hidden]."""
        return self._fc(aux)

    def read(self, next_ids: torch.Tensor, g: torch.Tensor) -> HeadInput:
        """Layer input from the token *after* each position and its g. int64 [N], [N, hidden]."""
        normed = self._hidden_norm(g)
        pair = torch.cat([self._input_norm(self._embedding[next_ids]), normed], dim=-1)
        return HeadInput(pair, normed if self.shape.norm_before_residual else g)

    def write_kv(self, inputs: HeadInput, positions: torch.Tensor, loc: torch.Tensor, pool: KvPool) -> None:
        """K and V of committed positions. positions, loc int64 [N]."""
        pool.write(0, loc, self._keys_values(inputs, positions))

    def forward(self, inputs: HeadInput, positions: torch.Tensor, attention: AttentionPlan, pool: KvPool) -> HeadOutput:
        """The layer at committed positions whose K and V are written: one row a request."""
        q = self._queries(inputs, positions)
        return self._finish(inputs, attention.run(0, q, pool))

    def forward_nodes(
        self,
        inputs: HeadInput,
        positions: torch.Tensor,
        prefixes: list[tuple[torch.Tensor, torch.Tensor]],
        cache: NodeCache,
        visible: torch.Tensor,
    ) -> HeadOutput:
        """The layer at m tree nodes of each of B requests; rows are request-major, N = B * m.

        positions int64 [N]; prefixes: keys and values of each request's committed tokens, [kv_heads, C, head_dim];
        the nodes' own K and V join ``cache``; visible bool [B, m, nodes in the cache then].
        """
        shape, batch = self.shape, len(prefixes)
        kv = self._keys_values(inputs, positions)
        cache.append(kv.unflatten(0, (batch, -1)), shape.num_kv_heads)
        assert cache.keys is not None
        assert cache.values is not None
        q = self._queries(inputs, positions)  # [B * m, heads, head_dim]
        nodes = q.shape[0] // batch
        group = shape.num_heads // shape.num_kv_heads
        outs = []
        for i, (prefix_k, prefix_v) in enumerate(prefixes):
            k = torch.cat([prefix_k, cache.keys[i]], dim=1)[None]
            v = torch.cat([prefix_v, cache.values[i]], dim=1)[None]
            sees = F.pad(visible[i : i + 1], (prefix_k.shape[1], 0), value=True)
            mask = additive_mask(sees, group, k.dtype)
            folded = fold_heads(q[i * nodes : (i + 1) * nodes], nodes, shape.num_kv_heads)
            out = F.scaled_dot_product_attention(folded, k, v, attn_mask=mask)
            outs.append(unfold_heads(out, nodes))
        return self._finish(inputs, torch.cat(outs))

    def _keys_values(self, inputs: HeadInput, positions: torch.Tensor) -> torch.Tensor:
        shape = self.shape
        kv = self._kv(inputs.pair).view(-1, 2 * shape.num_kv_heads, shape.head_dim)
        rotate(kv[:, : shape.num_kv_heads], self._rotation[positions][:, None])
        return kv

    def _queries(self, inputs: HeadInput, positions: torch.Tensor) -> torch.Tensor:
        q = self._q(inputs.pair).view(-1, self.shape.num_heads, self.shape.head_dim)
        rotate(q, self._rotation[positions][:, None])
        return q

    def _finish(self, inputs: HeadInput, attended: torch.Tensor) -> HeadOutput:
        x = self._mlp(self._o.plus(attended, inputs.residual))
        logits = self._lm_head(x)
        return HeadOutput(torch.log_softmax(logits.float(), dim=-1), x)

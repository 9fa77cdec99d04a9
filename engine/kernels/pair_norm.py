"""What an EAGLE-3 layer reads: a token's embedding and a hidden state, each normed, side by side in one row.

Gather, two norms and their concatenation are one launch: the head runs once a draft step, and launches are its cost.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton
from engine.kernels.rms_norm import rms_norm_reference


def pair_norm(
    ids: torch.Tensor,
    embedding: torch.Tensor,
    embedding_weight: torch.Tensor,
    g: torch.Tensor,
    g_weight: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """[norm(embedding[ids]) * embedding_weight, norm(g) * g_weight], by row, as `rms_norm` of each.

    ids int64 [N], embedding [vocab, H] contiguous, weights [H], g [N, H] (rows may lie apart) -> [N, 2 H] in g's dtype.
    """
    check_contiguous(ids=ids, embedding=embedding)
    if use_triton(g):
        return _pair_norm_triton(ids, embedding, embedding_weight, g, g_weight, eps)
    return pair_norm_reference(ids, embedding, embedding_weight, g, g_weight, eps)


def pair_norm_reference(
    ids: torch.Tensor,
    embedding: torch.Tensor,
    embedding_weight: torch.Tensor,
    g: torch.Tensor,
    g_weight: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """`pair_norm` in torch; float64 stays float64."""
    embedded = rms_norm_reference(F.embedding(ids, embedding), embedding_weight, eps)
    return torch.cat([embedded.to(g.dtype), rms_norm_reference(g, g_weight, eps)], dim=1)


def _pair_norm_triton(
    ids: torch.Tensor,
    embedding: torch.Tensor,
    embedding_weight: torch.Tensor,
    g: torch.Tensor,
    g_weight: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    n, hidden = g.shape
    out = torch.empty((n, 2 * hidden), dtype=g.dtype, device=g.device)
    block = next_power_of_2(hidden)
    _pair_norm_kernel[(n,)](
        ids,
        embedding,
        embedding_weight,
        g,
        g_weight,
        out,
        g.stride(0),
        eps,
        hidden=hidden,
        block=block,
        num_warps=min(max(block // 256, 1), 16),
    )
    return out


@jit(do_not_specialize_on_alignment=["ids_ptr"])
def _pair_norm_kernel(
    ids_ptr: tl.tensor,
    embedding_ptr: tl.tensor,
    embedding_weight_ptr: tl.tensor,
    g_ptr: tl.tensor,
    g_weight_ptr: tl.tensor,
    out_ptr: tl.tensor,
    g_stride: tl.tensor,
    eps: tl.tensor,
    hidden: tl.constexpr,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, block)
    inside = cols < hidden
    token = tl.load(ids_ptr + row)  # int64, and so is the offset of its row
    # All loads first: the second norm's are on their way while the first one reduces.
    g = tl.load(g_ptr + row * g_stride + cols, mask=inside, other=0.0).to(tl.float32)
    embedded = tl.load(embedding_ptr + token * hidden + cols, mask=inside, other=0.0).to(tl.float32)
    embedding_weight = tl.load(embedding_weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    g_weight = tl.load(g_weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    left = embedded * tl.rsqrt(tl.sum(embedded * embedded, axis=0) / hidden + eps) * embedding_weight
    right = g * tl.rsqrt(tl.sum(g * g, axis=0) / hidden + eps) * g_weight
    at = out_ptr + row * (2 * hidden) + cols
    tl.store(at, left.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(at + hidden, right.to(out_ptr.dtype.element_ty), mask=inside)

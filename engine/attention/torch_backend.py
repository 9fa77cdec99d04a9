"""Attention by torch alone, on any device and in any dtype, float64 too: what the other backends are held to."""

from __future__ import annotations

import torch

from engine.attention.backend import AttentionBackend, ExtendBatch, VerifyBatch
from engine.kernels.extend_attention import extend_attention_reference
from engine.kernels.paged_attention import paged_attention_reference


class TorchBackend(AttentionBackend):
    """Gathers keys and calls SDPA: verify pads every request to the bound, extend goes through them one by one."""

    name = "torch"
    graphs = True
    needs_lengths = False

    def refuses(self, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device) -> str | None:
        return "heads are no multiple of key heads" if heads % kv_heads else None

    def verify(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: VerifyBatch) -> torch.Tensor:
        out = paged_attention_reference(
            q,
            k,
            v,
            rows=batch.rows,
            width=batch.width,
            pages=batch.pages,
            lens=batch.lens,
            page_size=batch.page_size,
            tail_loc=batch.tail_loc,
            tail_mask=batch.tail_mask,
            bound=batch.bound,
        )
        return out.view(q.shape[0], -1)

    def extend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: ExtendBatch) -> torch.Tensor:
        out = extend_attention_reference(
            q,
            k,
            v,
            rows=batch.rows,
            pages=batch.pages,
            page_size=batch.page_size,
            host_lengths=batch.host_lengths,
            host_q=batch.host_q,
        )
        return out.view(q.shape[0], -1)

"""Attention by this project's Triton kernels: any lengths, masks and tail slots, none of them known on the host."""

from __future__ import annotations

import torch

from engine.attention.backend import AttentionBackend, ExtendBatch, VerifyBatch
from engine.kernels.attention_tiles import servable
from engine.kernels.dispatch import tl, use_triton
from engine.kernels.extend_attention import extend_attention
from engine.kernels.paged_attention import new_arrivals, paged_attention


class TritonBackend(AttentionBackend):
    """Holds the counters at which programs of one request meet, so an instance serves one stream."""

    name = "triton"
    graphs = True
    needs_lengths = False

    def __init__(self, device: torch.device) -> None:
        self._arrivals = new_arrivals(device)

    def refuses(self, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device) -> str | None:
        if tl is None:
            return "triton is not installed (pip install 'specwb[cuda]')"
        if not servable(head_dim, dtype):
            return "its kernels take head sizes 16, 32, 64, 128 and 256, in bfloat16, float16 or float32"
        if heads % kv_heads:
            return "heads are no multiple of key heads"
        if not use_triton(torch.empty(0, dtype=dtype, device=device)):
            return "its kernels need a GPU"
        return None

    def verify(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: VerifyBatch) -> torch.Tensor:
        out = paged_attention(
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
            arrivals=self._arrivals,
        )
        return out.view(q.shape[0], -1)

    def extend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: ExtendBatch) -> torch.Tensor:
        out = extend_attention(
            q,
            k,
            v,
            rows=batch.rows,
            starts=batch.starts,
            cu_q=batch.cu_q,
            max_q=batch.max_q,
            pages=batch.pages,
            page_size=batch.page_size,
            host_lengths=batch.host_lengths,
            host_q=batch.host_q,
        )
        return out.view(q.shape[0], -1)

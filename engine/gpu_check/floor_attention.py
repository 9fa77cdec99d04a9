"""Attention for the floor: every kernel at hand for a batch of equal lengths, and the fastest of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from engine.attention.backend import VerifyBatch
from engine.gpu_check.device_timer import median_ms
from engine.models.shapes import LlamaShape

PAGE = 64
WORKSPACE = 512 << 20
"""Bytes of FlashInfer's workspace."""

Work = Callable[[], object]


class FloorBatch:
    """``requests`` x ``width`` queries over ``length`` keys each, the newest ``width`` of them causal."""

    def __init__(self, shape: LlamaShape, requests: int, width: int, length: int, dtype: torch.dtype, device: str):
        self.shape, self.requests, self.width, self.length = shape, requests, width, length
        self.dtype, self.device = dtype, device
        self.pages_each = -(-length // PAGE)

    def random(self, *dims: int) -> torch.Tensor:
        return torch.randn(dims, dtype=self.dtype, device=self.device)

    def pool(self) -> torch.Tensor:
        """[slots, kv_heads, head_dim]"""
        return self.random(self.requests * self.pages_each * PAGE, self.shape.num_kv_heads, self.shape.head_dim)

    def queries(self) -> torch.Tensor:
        """[requests * width, heads, head_dim]"""
        return self.random(self.requests * self.width, self.shape.num_heads, self.shape.head_dim)


def fastest(batch: FloorBatch) -> tuple[Work, str]:
    """One layer's attention and its name. Keys lie in one layer's pool for all layers: the weights between two uses are
    larger than any cache, so they are read from memory each time."""
    found: list[tuple[float, Work, str]] = []
    why: list[str] = []
    for name, make in (("flashinfer", by_flashinfer), ("triton", by_triton), ("sdpa", by_sdpa)):
        try:
            work = make(batch)
            found.append((median_ms(work, batch.device, repeats=7), work, name))
        except Exception as error:  # not installed, or not for this shape: another one will do
            why.append(f"{name}: {type(error).__name__}: {error}")
    if not found:
        raise RuntimeError("no attention for the floor: " + "; ".join(why))
    _, work, name = min(found, key=lambda entry: entry[0])
    return work, name


def by_sdpa(batch: FloorBatch) -> Work:
    """Keys dense; the queries of a group side by side. Not causal among the newest: no less work than causal."""
    shape = batch.shape
    group = shape.num_heads // shape.num_kv_heads
    q = batch.random(batch.requests, shape.num_kv_heads, group * batch.width, shape.head_dim)
    k = batch.random(batch.requests, shape.num_kv_heads, batch.length, shape.head_dim)
    v = batch.random(batch.requests, shape.num_kv_heads, batch.length, shape.head_dim)
    return lambda: F.scaled_dot_product_attention(q, k, v)


def by_triton(batch: FloorBatch) -> Work:
    """Our own kernel for paged decode and verification."""
    from engine.attention.backend import choose_backend

    if batch.device != "cuda":
        raise RuntimeError("needs CUDA")
    shape = batch.shape
    backend, _ = choose_backend(
        "triton", shape.num_heads, shape.num_kv_heads, shape.head_dim, batch.dtype, torch.device("cuda")
    )
    described = verify_batch(batch)
    q, k, v = batch.queries(), batch.pool(), batch.pool()
    return lambda: backend.verify(q, k, v, described)


def verify_batch(batch: FloorBatch) -> VerifyBatch:
    """As the device worker would describe it: each request's pages one behind the other, the newest tokens its tail."""
    device = torch.device(batch.device)
    rows = torch.arange(batch.requests, device=device)
    pages = torch.arange(batch.requests * batch.pages_each, dtype=torch.int32, device=device)
    prefix = batch.length - batch.width
    tail = (rows * batch.pages_each * PAGE)[:, None] + prefix + torch.arange(batch.width, device=device)
    causal = torch.tensor([(2 << node) - 1 for node in range(batch.width)], device=device)
    return VerifyBatch(
        rows=rows,
        width=batch.width,
        pages=pages.view(batch.requests, batch.pages_each),
        lens=torch.full((batch.requests,), prefix, dtype=torch.int32, device=device),
        page_size=PAGE,
        tail_loc=tail,
        tail_mask=causal.expand(batch.requests, batch.width).contiguous() if batch.width > 1 else None,
        bound=batch.length,
    )


def by_flashinfer(batch: FloorBatch) -> Work:
    """FlashInfer's batch kernel over pages, on tensor cores also for one query a request; planned once."""
    import flashinfer

    shape, device = batch.shape, batch.device
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        torch.empty(WORKSPACE, dtype=torch.uint8, device=device), "NHD", backend="fa2"
    )

    def steps(size: int) -> torch.Tensor:
        return torch.arange(batch.requests + 1, dtype=torch.int32, device=device) * size

    last = batch.length - (batch.pages_each - 1) * PAGE
    wrapper.plan(
        steps(batch.width),
        steps(batch.pages_each),
        torch.arange(batch.requests * batch.pages_each, dtype=torch.int32, device=device),
        torch.full((batch.requests,), last, dtype=torch.int32, device=device),
        shape.num_heads,
        shape.num_kv_heads,
        shape.head_dim,
        PAGE,
        causal=True,
        q_data_type=batch.dtype,
        kv_data_type=batch.dtype,
    )
    paged = (batch.requests * batch.pages_each, PAGE, shape.num_kv_heads, shape.head_dim)
    q, k, v = batch.queries(), batch.pool().view(paged), batch.pool().view(paged)
    return lambda: wrapper.run(q, (k, v))

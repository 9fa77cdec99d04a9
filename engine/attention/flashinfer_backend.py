"""Attention by FlashInfer's paged kernels, planned on the host: decode, verification under a bit mask, and chunks.

FlashInfer lays a batch out over the GPU on the host, from exact lengths, and copies that plan to the device; the kernel
then runs from there. So a verify can be captured once and replayed, with a plan before each replay, as long as the
launch itself stays what it was. Two ways of planning keep it so, chosen by batch size:

- many requests: keys are not split, so the launch follows from batch and width alone;
- few: keys are split, as FlashInfer does for CUDA graphs: the launch is padded to what the GPU has room for.

The functions beneath FlashInfer's wrappers are called, not the wrappers (written against flashinfer-python 0.6.4). A
wrapper for graphs always splits, and sizes tiles for the longest chunk that its number of rows could be: 128 rows for
the 16 of 4 tokens, and 590 MB of partial results at 250 requests. Its plan also goes through lengths one by one in
Python. The decode wrapper, on tensor cores, calls these same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch

from engine.attention.backend import AttentionBackend, ExtendBatch, VerifyBatch
from engine.attention.flashinfer_plan import ALL, CAUSAL, CUSTOM, FlashInferPlan, HeadShape
from engine.attention.page_lists import list_pages
from engine.kernels.dispatch import tl

HEAD_DIMS = (64, 128, 256)
DTYPES = (torch.bfloat16, torch.float16)
NO_POSITIONS = 0
"""FlashInfer's PosEncodingMode.NONE."""


class FlashInferBackend(AttentionBackend):
    """One shape of heads on one stream. Kernels are compiled when the first plan is made (needs nvcc)."""

    name = "flashinfer"
    graphs = True
    needs_lengths = True

    def __init__(
        self,
        heads: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        functions: Any = None,
    ) -> None:
        """``functions``: plan and paged_run, in place of FlashInfer's own."""
        self._shape = HeadShape(heads, kv_heads, head_dim, dtype, device)
        self._functions = functions
        # (requests, width) -> plan, and the longest request
        self._plans: dict[tuple[int, int], tuple[FlashInferPlan, int]] = {}
        self._chunks: FlashInferPlan | None = None
        self._extends: ExtendBatch | None = None  # what `_chunks` is planned for

    def refuses(self, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device) -> str | None:
        if device.type != "cuda":
            return "its kernels need a GPU"
        if find_spec("flashinfer") is None or tl is None:
            return "flashinfer is not installed (pip install 'specwb[cuda]')"
        if torch.cuda.get_device_capability(device) < (8, 0):
            return "its kernels need compute capability 8.0 or later"
        if head_dim not in HEAD_DIMS:
            return "its kernels take head sizes 64, 128 and 256"
        if dtype not in DTYPES:
            return "its kernels take bfloat16 and float16"
        return "heads are no multiple of key heads" if heads % kv_heads else None

    def plan(
        self,
        lengths: Sequence[int],
        pages: Sequence[Sequence[int]],
        *,
        width: int,
        bucket: int,
        page_size: int,
        bound: int,
    ) -> None:
        lists = list_pages(
            [length + width for length in lengths],
            pages,
            [width] * len(lengths),
            page_size,
            batch=bucket,
            padding_queries=width,
        )
        if (bucket, width) not in self._plans:
            room = FlashInferPlan(self._shape, self._load(), bucket, bucket * -(-bound // page_size), width)
            self._plans[bucket, width] = room, bound
        self._plans[bucket, width][0].make(lists, page_size, causal=False)

    def verify(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: VerifyBatch) -> torch.Tensor:
        requests, width = batch.rows.shape[0], batch.width
        if (requests, width) not in self._plans:
            raise RuntimeError(f"no plan for {requests} requests x {width}: plan() comes before verify()")
        plan, bound = self._plans[requests, width]
        if batch.tail_mask is None:
            return plan.run(q, k, v, ALL)
        plan.pack(batch, batch.tail_mask, k.shape[0], -(-width * bound // 8))
        return plan.run(q, k, v, CUSTOM)

    def extend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: ExtendBatch) -> torch.Tensor:
        if self._chunks is None or self._extends is not batch:  # the first layer's call
            lists = list_pages(batch.host_lengths, batch.host_pages, batch.host_q, batch.page_size)
            room = self._chunks
            if room is None or room.requests < lists.lengths.size or room.pages < lists.pages.size:
                requests, pages = 2 * lists.lengths.size, 2 * lists.pages.size  # grows seldom
                self._chunks = room = FlashInferPlan(self._shape, self._load(), requests, pages, None)
            room.make(lists, batch.page_size, causal=True)
            self._extends = batch
        assert self._chunks is not None
        return self._chunks.run(q, k, v, CAUSAL)

    def _load(self) -> Any:
        if self._functions is None:
            from flashinfer.prefill import get_batch_prefill_module

            dtype, dim = self._shape.dtype, self._shape.head_dim
            self._functions = get_batch_prefill_module(
                "fa2", dtype, dtype, dtype, torch.int32, dim, dim, NO_POSITIONS, False, False, False
            )
        return self._functions

"""A batch laid out for FlashInfer: the buffers its kernel reads, and the plan that says how it is launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.attention.backend import VerifyBatch
from engine.attention.page_lists import PageLists
from engine.kernels.card import multiprocessors
from engine.kernels.mask_bits import pack_masks

# FlashInfer's enums, by value.
ALL, CAUSAL, CUSTOM = 0, 1, 2  # MaskMode
NHD = 0  # TensorLayout


@dataclass(frozen=True)
class HeadShape:
    """What the kernels are compiled for, and the heads that share them."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads


class FlashInferPlan:
    """Room for up to so many requests and pages, planned anew for each batch.

    ``width``: queries of each request, so that every plan is launched alike and a graph can hold the run. None: any
    number, and no graph.
    """

    def __init__(self, shape: HeadShape, functions: Any, requests: int, pages: int, width: int | None) -> None:
        """``functions``: FlashInfer's plan and paged_run. ``pages``: entries of all requests' page lists together."""
        self.requests, self.pages, self.width = requests, pages, width
        self._shape, self._functions = shape, functions
        device, on_gpu = shape.device, shape.device.type == "cuda"
        sms = multiprocessors(device)
        self._splits = width is None or requests * shape.kv_heads < 2 * sms
        padded = max(1, 2 * sms // shape.kv_heads)  # programs a key head that FlashInfer splits keys for
        tile = 128
        if width is not None:
            padded, tile = _graph_launch(requests, width, shape, padded)
        partial_bytes = shape.heads * padded * tile * (shape.head_dim + 1) * 4 if self._splits else 0
        plan_bytes = 8 << 20 if width is None else 16 * (padded + requests * (width * shape.group + 2)) + 4096
        lists = 3 * (requests + 1) + 2 * requests + pages
        self._partial = torch.zeros(partial_bytes + 4096, dtype=torch.uint8, device=device)
        self._plan = torch.zeros(plan_bytes, dtype=torch.uint8, device=device)
        self._pinned_plan = torch.empty(plan_bytes, dtype=torch.uint8, pin_memory=on_gpu)
        self._lists = torch.zeros(lists, dtype=torch.int32, device=device)
        self._pinned_lists = torch.empty(lists, dtype=torch.int32, pin_memory=on_gpu)
        self._copied = torch.cuda.Event() if on_gpu else None
        self._mask: torch.Tensor | None = None
        self._packed: tuple[VerifyBatch, bool] | None = None  # whose mask stands in `_mask`, and if a capture made it
        self._launch: list[int] | None = None
        self._info: Any = None
        self._page_size = 0

    def make(self, lists: PageLists, page_size: int, *, causal: bool) -> None:
        """Plan a batch. Waits until the copies of the plan before it have been made, which the device may do late.

        Raises:
            ValueError: more pages than there is room for.
            RuntimeError: FlashInfer would launch this batch otherwise than the ones before it.
        """
        if lists.pages.size > self.pages:
            raise ValueError(f"{lists.pages.size} pages in use; the first plan's bound left room for {self.pages}")
        if self._copied is not None:
            self._copied.synchronize()
        shape, arrays = self._shape, lists.arrays
        sizes = [array.size for array in arrays]
        np.concatenate(arrays, out=self._pinned_lists.numpy()[: sum(sizes)])
        listed = self._lists[: sum(sizes)].copy_(self._pinned_lists[: sum(sizes)], non_blocking=True)
        self._q_starts, self._page_starts, self._last_page, self._lengths, self._mask_starts, self._pages = (
            listed.split(sizes)
        )
        self._info = self._functions.plan(
            self._partial,
            self._plan,
            self._pinned_plan,
            torch.from_numpy(lists.q_starts),
            torch.from_numpy(lists.page_starts),
            torch.from_numpy(lists.lengths),
            int(lists.q_starts[-1]),
            lists.lengths.size,
            shape.heads,
            shape.kv_heads,
            page_size,
            self.width is not None and self._splits,  # for CUDA graphs: pads the launch
            shape.head_dim,
            shape.head_dim,
            causal,
            -1,  # no window
            -1,  # no fixed size of splits
            not self._splits,
            0,  # no other kernel beside it
        )
        if self._copied is not None:
            self._copied.record()
        launch = [int(number) for number in self._info]
        if self.width is not None and self._launch not in (None, launch):
            raise RuntimeError(f"FlashInfer's launch changed from {self._launch} to {launch}: a graph cannot hold it")
        self._launch, self._page_size, self._packed = launch, page_size, None

    def pack(self, batch: VerifyBatch, masks: torch.Tensor, slots: int, most_bytes: int) -> None:
        """The masks of a verify, once for all layers; a graph holds it too. ``slots``: of the pool, which bound all
        requests together; ``most_bytes``: what the longest request can take."""
        capturing = self._shape.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        if self._packed is not None and self._packed[0] is batch and self._packed[1] == capturing:
            return
        if self._mask is None:
            together = -(-batch.width * (slots + self.requests) // 8) + self.requests
            room = min(self.requests * most_bytes, together)
            self._mask = torch.zeros(room, dtype=torch.uint8, device=self._shape.device)
        pack_masks(masks, self._lengths, self._mask_starts, most_bytes, self._mask)
        self._packed = batch, capturing

    def run(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask_mode: int) -> torch.Tensor:
        """q [N, heads, head_dim] over pools [slots, kv_heads, head_dim] -> [N, heads * head_dim]."""
        shape, size = self._shape, self._page_size
        whole = k.shape[0] // size * size
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        custom = mask_mode == CUSTOM
        self._functions.paged_run(
            self._partial,
            self._plan,
            self._info,
            q,
            k[:whole].view(-1, size, shape.kv_heads, shape.head_dim),
            v[:whole].view(-1, size, shape.kv_heads, shape.head_dim),
            self._q_starts,
            self._page_starts,
            self._pages,
            self._last_page,
            out,
            None,  # no log-sum-exp
            mask_mode,
            NHD,
            -1,  # no window
            False,  # no programmatic launch: what runs before knows nothing of it
            self._mask if custom else None,
            self._mask_starts if custom else None,
            None,  # no ALiBi
            None,  # no items
            None,
            None,
            0.0,  # no soft cap
            shape.head_dim**-0.5,
            None,  # no scales of 8-bit data
            None,
            None,
            1.0,  # rotations are made before
            1e4,
            0,
            self._partial.numel(),
        )
        return out.view(q.shape[0], -1)


def _graph_launch(requests: int, width: int, shape: HeadShape, padded: int) -> tuple[int, int]:
    """Programs a key head and rows of a tile that FlashInfer 0.6.4 takes when it plans for a graph (scheduler.cuh)."""
    rows = requests * width
    longest = (rows - requests + 1) * shape.group  # the most rows that one of so many requests could have
    tile = 128 if longest > 64 and shape.head_dim < 256 else 64 if longest > 16 else 16
    return max(padded, -(-rows * shape.group // tile) + requests - 1), tile

"""What a step must know of every running request, as device tensors: step N + 1 starts from what step N left there.

A request owns a row for its life. The host writes a row when the request joins or its page list grows, and otherwise
never reads or writes one: lengths and newest tokens advance in the step itself. The last row, ``pad_row``, belongs to
nobody: it fills batches up to the sizes that graphs are captured for, and all that it writes goes to the scrap page.
"""

from __future__ import annotations

import torch

RING_ROWS = 64
"""Rows of hidden states that a request may wait with before the draft's K and V are written, as in
engine/spec/draft_sync.py; also the widest step of one request."""


class DeviceState:
    """Tensors of R = ``max_rows`` + 1 rows, one row a request."""

    def __init__(
        self,
        max_rows: int,
        max_pages: int,
        page_size: int,
        aux_width: int,
        hidden: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        scrap_page: int,
    ) -> None:
        """``aux_width``: the target's hidden states that the head reads, n_aux * target hidden, and ``hidden``: the
        head's; both 0 without a draft. ``dtype``: of the activations. ``scrap_page``: the pool's, where entries of the
        page table point until they are written, the pad row's for ever."""
        rows = max_rows + 1
        self.pad_row = max_rows
        self.page_size = page_size
        self.device = device
        int64, int32, float64 = torch.int64, torch.int32, torch.float64

        def zeros(*dims: int, of: torch.dtype) -> torch.Tensor:
            return torch.zeros(dims, dtype=of, device=device)

        self.tokens = zeros(rows, of=int64)  # newest token of each request: it has no K and V yet
        self.lens = zeros(rows, of=int32)  # committed tokens: those with K and V
        columns = max(max_pages, -(-RING_ROWS // page_size))  # the pad row steps as wide as any
        self.pages = torch.full((rows, columns), scrap_page, dtype=int32, device=device)
        self.ring_len = zeros(rows, of=int32)  # rows of aux that wait, the newest committed positions
        self.aux_ring = zeros(rows, RING_ROWS, aux_width, of=dtype)
        self.ring_ids = zeros(rows, RING_ROWS, of=int64)  # the token after each waiting position
        self.draft_g = zeros(rows, hidden, of=dtype)  # g of the last position with draft K and V
        self.seeds = zeros(rows, of=int64)  # 64 bits, as two's complement
        self.temperature = zeros(rows, of=float64)  # 0 is greedy
        self.top_k = zeros(rows, of=int32)  # 0 is off
        self.top_p = torch.ones(rows, dtype=float64, device=device)
        self.min_p = zeros(rows, of=float64)
        self._steps = torch.arange(RING_ROWS, dtype=int64, device=device)

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in vars(self).values() if isinstance(tensor, torch.Tensor))

    def slots(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Slots of positions of each request. rows int64 [B], positions int64 [B, n] -> int64 [B, n].

        No sync and no shape that depends on data, so a graph can hold it. Every position must have an entry in the page
        table; whether that entry is the request's own is not checked here.
        """
        page = self.pages[rows[:, None], positions // self.page_size]  # int32 [B, n]
        return torch.add(positions % self.page_size, page, alpha=self.page_size)

    def following(self, rows: torch.Tensor, width: int) -> torch.Tensor:
        """Positions of the next ``width`` (at most RING_ROWS) tokens: lens..lens + width - 1, int64 [B, width]."""
        return self.lens[rows][:, None] + self._steps[:width]

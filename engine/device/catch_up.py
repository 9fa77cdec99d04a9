"""The sync stage of plain decodes: waiting rings of hidden states become K and V of the draft, many requests at once.

Which rows wait is exact on the host (one more a plain decode), so the flat batch is built there; where they belong is
not, under overlap, and comes from the lengths on the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from engine.device.parts import Draft
from engine.device.row_table import Row
from engine.device.state import RING_ROWS, DeviceState
from engine.device.transfers import Uploads

MOST_TOKENS = 8192
"""Tokens written at a time: their hidden states are copied out of the rings, 24 KB each in an 8B model."""


class CatchUp:
    """Rings to empty in one step."""

    def __init__(self, waiting: Sequence[tuple[Row, int]], uploads: Uploads) -> None:
        """Put the batch into the upload: each row with the count of hidden states that will wait in its ring."""
        self.waiting = list(waiting)
        if not self.waiting:
            return
        self._uploads = uploads
        counts = np.array([count for _, count in self.waiting], dtype=np.int64)
        indices = np.array([row.index for row, _ in self.waiting], dtype=np.int64)
        ends = counts.cumsum()
        self.tokens = int(counts.sum())
        self._rows = uploads.put(indices)
        self._token_rows = uploads.put(indices.repeat(counts))
        self._places = uploads.put(np.arange(self.tokens) - (ends - counts).repeat(counts))  # in the ring
        self._newest = uploads.put(ends - 1)  # token index of each ring's last

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def run(self, draft: Draft, state: DeviceState) -> None:
        """Write, and empty the rings. The tokens of the rings are committed, and the newest ones."""
        take, head = self._uploads.take, draft.head
        rows, newest = take(self._rows), take(self._newest)
        token_rows, places = take(self._token_rows), take(self._places)
        oldest = state.lens[rows] - state.ring_len[rows]  # position of each ring's first, int32 [rows]
        state.ring_len.index_copy_(0, rows, torch.zeros_like(oldest))
        # By row, so that a token finds its own; nobody else reads it.
        first = torch.zeros_like(state.lens).index_copy_(0, rows, oldest)
        positions = first[token_rows] + places  # int64 [tokens]
        loc = state.slots(token_rows, positions[:, None]).view(-1)
        flat = torch.add(places, token_rows, alpha=RING_ROWS)
        rings, ids = state.aux_ring.view(-1, state.aux_ring.shape[2]), state.ring_ids.view(-1)
        pieces = []
        for start in range(0, self.tokens, MOST_TOKENS):
            piece = slice(start, start + MOST_TOKENS)
            g = head.fuse(rings[flat[piece]])
            head.write_kv(head.read(ids[flat[piece]], g), positions[piece], loc[piece], draft.pool)
            pieces.append(g)
        state.draft_g.index_copy_(0, rows, torch.cat(pieces)[newest])

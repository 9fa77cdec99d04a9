"""The draft's KV follows the target's, also while speculation is off.

Rows of hidden states wait per request until `catch_up` turns them into K and V in one product for all requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from engine.kv.ledger import KvLedger
from engine.kv.pool import KvPool
from engine.models.eagle3 import Eagle3Head
from engine.request_view import RequestView

LAZY_ROWS = 64
"""Rows a request may wait with in lazy mode before they are written."""


@dataclass
class DraftState:
    """What the draft knows of one request."""

    request: RequestView
    written: int = 0  # positions with draft K and V
    waiting: list[torch.Tensor] = field(default_factory=list)  # aux of positions written.. , [n, n_aux * hidden] each
    lag: int = 0  # rows in `waiting`
    newest: torch.Tensor | None = None  # g of position written - 1, [1, hidden]


class DraftKv:
    """The draft's pool, indexed by the target's slots, and what waits to be written to it."""

    def __init__(self, head: Eagle3Head, ledger: KvLedger) -> None:
        self.head = head
        self.pool: KvPool = head.make_pool(ledger.total)
        self.states: dict[str, DraftState] = {}
        self._ledger = ledger

    def observe(self, request: RequestView, aux: torch.Tensor) -> None:
        """aux [n, n_aux * hidden] of the newest n committed positions."""
        state = self.states.setdefault(request.request_id, DraftState(request))
        state.waiting.append(aux)
        state.lag += aux.shape[0]

    def catch_up(self, states: Iterable[DraftState]) -> None:
        """Write K and V of all waiting rows of these requests: fc, norms, k and v projections, nothing else."""
        behind = [state for state in states if state.waiting]
        if not behind:
            return
        aux, ids, positions, locs = [], [], [], []
        for state in behind:
            start, stop = state.written, state.written + state.lag
            aux.extend(state.waiting)
            ids.extend(state.request.ids[start + 1 : stop + 1])  # position t reads token t + 1
            positions.append(torch.arange(start, stop))
            locs.append(self._ledger.slots_of(state.request.request_id).slots(start, stop))
        g = self.head.fuse(torch.cat(aux))
        inputs = self.head.read(torch.tensor(ids), g)
        self.head.write_kv(inputs, torch.cat(positions), torch.cat(locs), self.pool)
        row = 0
        for state in behind:
            row += state.lag
            state.newest = g[row - 1 : row].clone()
            state.written += state.lag
            state.waiting, state.lag = [], 0
        self.pool.take_written()

    def settle_lazily(self) -> None:
        """Write for the requests whose waiting rows are full."""
        self.catch_up([state for state in self.states.values() if state.lag >= LAZY_ROWS])

"""A planned step as the device gets it: batches of rows, and everything that only the host knows, in one copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.device.buffers import Buffers, WidthBuffers
from engine.device.catch_up import CatchUp
from engine.device.prefill import PrefillBatch
from engine.device.row_table import Row, RowTable
from engine.device.row_writes import RowWrites
from engine.device.sampling import Sampled, is_filtered
from engine.device.state import RING_ROWS
from engine.device.transfers import Uploads
from engine.kv.ledger import KvLedger
from engine.step_plan import DecodeRow, StepPlan
from probes.knobs import DraftSync

FLUSH_WITH = RING_ROWS // 2
"""Once a ring is full, those that hold this much are emptied along with it: fewer and larger products."""


class DecodeBatch:
    """The decode requests of a step that are of one width."""

    def __init__(
        self,
        width: int,
        places: Sequence[int],
        decodes: Sequence[DecodeRow],
        rows: Sequence[Row],
        pages: Sequence[list[int]],
        padded: int,
        buffers: Buffers,
        pad_row: int,
        uploads: Uploads,
    ) -> None:
        """``places``: of these requests among the plan's decodes; ``rows`` and ``pages`` are of the whole plan.
        ``padded``: the batch size that runs."""
        self.width = width
        self.places = places
        self.decodes = [decodes[place] for place in places]
        self.rows = [rows[place] for place in places]
        self.pages = [pages[place] for place in places]
        self.padded = padded
        self.buffers: WidthBuffers = buffers.of_width(width)
        self.bound = max(row.start_max for row in self.decodes)
        """On the committed length of any of them."""
        self._uploads = uploads
        indices = [row.index for row in self.rows] + [pad_row] * (padded - len(places))
        self._rows_ticket = uploads.put(indices) if buffers.places(width, indices) else None
        params = [row.request.sampling for row in self.decodes]
        sampled = [at for at, p in enumerate(params) if not p.greedy]
        self._is_filtered = is_filtered([params[at] for at in sampled])
        self._sampled_ticket = uploads.put(sampled) if sampled else None
        self.asked = [(at, p.logprobs) for at, p in enumerate(params) if p.logprobs is not None]
        """(place in this batch, likeliest tokens wanted) of requests that want log probabilities."""

    @property
    def sampled(self) -> Sampled | None:
        """The requests that sample; None when all are greedy."""
        if self._sampled_ticket is None:
            return None
        return Sampled(self._uploads.take(self._sampled_ticket), self._is_filtered)

    def place(self) -> None:
        """Copy the rows into their static buffer, unless they stand there from the step before."""
        if self._rows_ticket is not None:
            self.buffers.rows[: self.padded].copy_(self._uploads.take(self._rows_ticket))


class StepBatches:
    """Everything of one step. Made before the step's copy is sent; `finish` when all of it is launched."""

    def __init__(
        self,
        plan: StepPlan,
        sync: DraftSync,
        table: RowTable,
        ledger: KvLedger,
        buffers: Buffers,
        padded: Callable[[int], int],
        pad_row: int,
        uploads: Uploads,
    ) -> None:
        """``padded``: count of requests -> the batch size that runs."""
        rows = [table.of(request) for request in plan.requests]
        for row in rows:
            if row.request.stays_plain and row.keeps_draft:
                row.drop_draft()
        pages = [ledger.slots_of(row.request.request_id).pages for row in rows]
        self.writes = RowWrites(rows, pages, uploads)
        decodes = plan.decodes
        by_width: dict[int, list[int]] = {}
        for place, decode in enumerate(decodes):
            by_width.setdefault(decode.width, []).append(place)
        self.decodes = [
            DecodeBatch(width, places, decodes, rows, pages, padded(len(places)), buffers, pad_row, uploads)
            for width, places in sorted(by_width.items())
        ]
        self.prefill: PrefillBatch | None = None
        if plan.prefills:
            first = len(decodes)
            self.prefill = PrefillBatch(plan.prefills, rows[first:], pages[first:], uploads)
        self._plan_rings(sync, table, uploads)

    @property
    def plain(self) -> DecodeBatch | None:
        """Requests that decode one token."""
        return next((batch for batch in self.decodes if batch.width == 1), None)

    @property
    def tree(self) -> DecodeBatch | None:
        """Requests that verify a tree."""
        return next((batch for batch in self.decodes if batch.width > 1), None)

    def _plan_rings(self, sync: DraftSync, table: RowTable, uploads: Uploads) -> None:
        """Which rings are emptied: before the draft those of requests that speculate, at the end those that are due."""
        tree = self.tree.rows if self.tree is not None else []
        plain = self.plain.rows if self.plain is not None else []
        self.behind = CatchUp([(row, row.ring) for row in tree if row.ring], uploads)
        after = {row.index: (row, row.ring) for row in table if row.keeps_draft and row.ring}
        for row in tree:
            after.pop(row.index, None)
        for row in plain:
            if row.keeps_draft:
                after[row.index] = (row, row.ring + 1)
        self._rings = list(after.values())
        least = 1
        if sync != "eager":
            least = FLUSH_WITH if any(ring >= RING_ROWS for _, ring in self._rings) else RING_ROWS
        self.due = CatchUp([(row, ring) for row, ring in self._rings if ring >= least], uploads)

    def finish(self) -> None:
        """The step is launched: the host's copy of ring lengths follows."""
        for row, ring in self._rings:
            row.ring = ring
        for catch_up in (self.behind, self.due):
            for row, _ in catch_up.waiting:
                row.ring = 0

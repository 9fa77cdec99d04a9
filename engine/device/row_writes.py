"""What the host writes into rows of the device's state: a new request's constants, and pages as they are handed out."""

from __future__ import annotations

from collections.abc import Sequence

from engine.device.row_table import Row
from engine.device.state import DeviceState
from engine.device.transfers import Uploads
from engine.kernels.keyed import signed_seed


class RowWrites:
    """The writes of one step."""

    def __init__(self, rows: Sequence[Row], pages: Sequence[list[int]], uploads: Uploads) -> None:
        """Put into the upload what the device does not know of these rows yet. ``pages``: each request's, in order."""
        self._uploads = uploads
        new = [row for row in rows if row.is_new]
        page_rows: list[int] = []
        columns: list[int] = []
        numbers: list[int] = []
        for row, owned in zip(rows, pages, strict=True):
            if len(owned) > row.pages_sent:
                fresh = range(row.pages_sent, len(owned))
                page_rows += [row.index] * len(fresh)
                columns += fresh
                numbers += owned[row.pages_sent :]
                row.pages_sent = len(owned)
        self._has_new, self._has_pages = bool(new), bool(page_rows)
        if new:
            params = [row.request.sampling for row in new]
            self._new_rows = uploads.put([row.index for row in new])
            self._seeds = uploads.put([signed_seed(row.request.seed) for row in new])
            self._top_k = uploads.put([p.top_k for p in params])
            self._temperature = uploads.put_floats([p.temperature for p in params])
            self._top_p = uploads.put_floats([p.top_p for p in params])
            self._min_p = uploads.put_floats([p.min_p for p in params])
            for row in new:
                row.is_new = False
        if page_rows:
            self._page_rows, self._columns = uploads.put(page_rows), uploads.put(columns)
            self._numbers = uploads.put(numbers)

    def run(self, state: DeviceState) -> None:
        """Write. A row's earlier owner is overwritten where a step could see it; the rest comes with the prompt."""
        take, floats = self._uploads.take, self._uploads.take_floats
        if self._has_new:
            rows = take(self._new_rows)
            state.seeds.index_copy_(0, rows, take(self._seeds))
            state.top_k.index_copy_(0, rows, take(self._top_k).int())
            state.temperature.index_copy_(0, rows, floats(self._temperature))
            state.top_p.index_copy_(0, rows, floats(self._top_p))
            state.min_p.index_copy_(0, rows, floats(self._min_p))
            nothing = take(self._top_k).new_zeros(rows.shape, dtype=state.lens.dtype)
            state.lens.index_copy_(0, rows, nothing)
            state.ring_len.index_copy_(0, rows, nothing)
        if self._has_pages:
            where = (take(self._page_rows), take(self._columns))
            state.pages.index_put_(where, take(self._numbers).int())

"""Which row of the device's state a request owns, and what the host knows of that row without ever reading it.

Two counts of the draft's progress stand side by side. ``ring`` runs with the *launches*: how many rows of hidden states
wait on the device once everything launched has run; it is exact, for only plain decodes add to it, one row each.
``written`` and ``lag`` run with the *landings*, as the host's requests do: with overlap they are a step behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.request import Request


@dataclass
class Row:
    """One request's row."""

    request: Request
    index: int  # of the state's tensors
    pages_sent: int = 0  # entries of its page table on the device
    is_new: bool = True  # its constants (seed, sampling) are not on the device yet
    keeps_draft: bool = True  # False: no draft is loaded, or the request gave up drafting
    ring: int = 0  # waiting rows, by what was launched
    lag: int = 0  # waiting rows, by what has landed
    written: int = 0  # positions with draft K and V, by what has landed

    def push(self, count: int) -> None:
        """Committed positions whose hidden states wait: a step landed."""
        if self.keeps_draft:
            self.lag += count

    def write(self, count: int, *, waited: bool) -> None:
        """Draft K and V of committed positions were written: a step landed. ``waited``: they counted as lag."""
        if self.keeps_draft:
            self.written += count
            self.lag -= count if waited else 0

    def drop_draft(self) -> None:
        """The request stays plain from now on; steps in flight count no more."""
        self.keeps_draft = False
        self.ring = self.lag = self.written = 0


class RowTable:
    """Rows of running requests. A freed row is taken again at once: on the device, all of its last step runs before
    anything of the next owner's first."""

    def __init__(self, max_rows: int, *, has_draft: bool) -> None:
        self._has_draft = has_draft
        self._free = list(range(max_rows - 1, -1, -1))
        self._rows: dict[str, Row] = {}

    def of(self, request: Request) -> Row:
        """The request's row; a new one when it has none.

        Raises:
            RuntimeError: more requests than rows.
        """
        row = self._rows.get(request.request_id)
        if row is None:
            if not self._free:
                raise RuntimeError(f"request {request.request_id}: all {len(self._rows)} rows of the device are taken")
            row = Row(request, self._free.pop(), keeps_draft=self._has_draft)
            self._rows[request.request_id] = row
        return row

    def forget(self, request_id: str) -> None:
        """Free a request's row; unknown ids are ignored."""
        row = self._rows.pop(request_id, None)
        if row is not None:
            row.drop_draft()
            self._free.append(row.index)

    def lag(self, request_id: str) -> int:
        row = self._rows.get(request_id)
        return row.lag if row is not None else 0

    @property
    def written(self) -> int:
        """Positions with draft K and V, over all requests."""
        return sum(row.written for row in self._rows.values())

    @property
    def waiting(self) -> int:
        """Rows of hidden states that wait, over all requests."""
        return sum(row.lag for row in self._rows.values())

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

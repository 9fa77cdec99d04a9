"""Accounting of KV slots: admission, the reservation of a step, what is kept of it, and what goes back.

One page table serves the target and the draft: a position has the same slot in both pools.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kv.pages import PageAllocator
from engine.kv.request_slots import RequestSlots


class KvExhaustedError(RuntimeError):
    """A reservation found too few pages. Nothing was reserved."""


@dataclass(frozen=True)
class Reservation:
    """What the allocator handed out for one step.

    ``positions``: (request id, first and last + 1 of its positions that got a slot), in the order of the plan. While a
    verify of a request is in flight its length is only known to lie between two numbers: the positions are then the
    furthest ones, and the step writes as many slots at or before them.
    """

    positions: tuple[tuple[str, int, int], ...]
    pages_allocated: int
    set_by: str = "engine.kv.ledger:KvLedger.reserve"

    @property
    def slots(self) -> int:
        return sum(stop - start for _, start, stop in self.positions)


@dataclass
class _Account:
    slots: RequestSlots
    committed: int = 0
    reserved: int = 0  # by all steps in flight

    @property
    def end(self) -> int:
        """Position behind everything committed or reserved."""
        return self.committed + self.reserved


class KvLedger:
    """Who owns which slots.

    Invariant: ``used`` (slots in use) = sum of committed lengths + reserved; when nothing runs both it and the pages
    in use are zero.
    """

    def __init__(self, kv_tokens: int, page_size: int) -> None:
        if page_size < 1 or kv_tokens < page_size:
            raise ValueError(f"kv_tokens={kv_tokens} must hold at least one page of page_size={page_size} tokens")
        self.page_size = page_size
        self.allocator = PageAllocator(kv_tokens // page_size)
        self._accounts: dict[str, _Account] = {}
        self._fresh_pages = 0  # allocated since the last reservation, for the step event

    @property
    def total(self) -> int:
        """Slots in the pool."""
        return self.allocator.num_pages * self.page_size

    @property
    def used(self) -> int:
        return sum(account.committed + account.reserved for account in self._accounts.values())

    @property
    def pages_used(self) -> int:
        return self.allocator.num_pages - self.allocator.free_pages

    def pages_for(self, tokens: int) -> int:
        return -(-tokens // self.page_size)

    def fits_ever(self, tokens: int) -> bool:
        """Whether an empty pool could hold a request of this worst case."""
        return self.pages_for(tokens) <= self.allocator.num_pages

    def admit(self, request_id: str, worst_case: int) -> bool:
        """Set the pages of a request's worst case aside; False when they are not free now."""
        pages = self.allocator.allocate(self.pages_for(worst_case))
        if pages is None:
            return False
        self._fresh_pages += len(pages)
        self._accounts[request_id] = _Account(RequestSlots(self.page_size, pages))
        return True

    def slots_of(self, request_id: str) -> RequestSlots:
        return self._accounts[request_id].slots

    def committed(self, request_id: str) -> int:
        return self._accounts[request_id].committed

    def extra_pages(self, request_id: str, width: int) -> int:
        """Pages beyond its own that a request needs for ``width`` more tokens, behind those in flight."""
        account = self._accounts[request_id]
        return max(0, self.pages_for(account.end + width) - len(account.slots.pages))

    def reserve(self, rows: list[tuple[str, int]]) -> Reservation:
        """Slots for ``width`` tokens behind the committed and reserved ones of each (request, width).

        Raises:
            KvExhaustedError: too few pages; nothing is reserved.
        """
        extra = {request_id: self.extra_pages(request_id, width) for request_id, width in rows}
        need = sum(extra.values())
        if need > self.allocator.free_pages:
            raise KvExhaustedError(f"the step needs {need} more KV pages, {self.allocator.free_pages} are free")
        positions = []
        for request_id, width in rows:
            account = self._accounts[request_id]
            if extra[request_id]:
                pages = self.allocator.extend(account.slots.pages[-1], extra[request_id])
                assert pages is not None  # counted above
                account.slots.pages.extend(pages)
                self._fresh_pages += len(pages)
            positions.append((request_id, account.end, account.end + width))
            account.reserved += width
        fresh, self._fresh_pages = self._fresh_pages, 0
        return Reservation(tuple(positions), fresh)

    def locate(self, starts: list[tuple[str, int, int]]) -> torch.Tensor:
        """Slots of the positions of each (request, start, count), one behind the other: int64 [sum of counts]."""
        locs = [self.slots_of(request_id).slots(start, start + count) for request_id, start, count in starts]
        return torch.cat(locs) if locs else torch.empty(0, dtype=torch.int64)

    def commit(self, request_id: str, kept: int, reserved: int) -> int:
        """Keep the first ``kept`` of a step's ``reserved`` slots; the count of those that go back. The tail page stays.

        Raises:
            RuntimeError: more is kept than the step reserved, or it reserved more than stands in the account.
        """
        account = self._accounts[request_id]
        if not 0 <= kept <= reserved <= account.reserved:
            raise RuntimeError(
                f"request {request_id} keeps {kept} of {reserved} slots, {account.reserved} are reserved for it"
            )
        account.committed += kept
        account.reserved -= reserved
        return reserved - kept

    def roll_back(self, rows: list[tuple[str, int]]) -> None:
        """Undo a reservation whose step never ran; requests that are gone have nothing to undo."""
        for request_id, width in rows:
            account = self._accounts.get(request_id)
            if account is not None:
                account.reserved -= width

    def release(self, request_id: str) -> int:
        """Free everything of a request; the count of slots that were in use. Unknown ids are 0."""
        account = self._accounts.pop(request_id, None)
        if account is None:
            return 0
        self.allocator.free(account.slots.pages)
        return account.committed + account.reserved

    def check(self, committed: dict[str, int], reserved: dict[str, int]) -> None:
        """Compare with what the requests believe; ``reserved``: by the steps in flight, where there are any.

        Raises:
            AssertionError: naming the request and both numbers.
        """
        ours = {request_id: account.committed for request_id, account in self._accounts.items()}
        assert ours == committed, f"KV ledger says {ours}, requests say {committed}"
        pages = [page for account in self._accounts.values() for page in account.slots.pages]
        assert len(set(pages)) == len(pages) == self.pages_used, (
            f"{len(pages)} pages are owned ({len(set(pages))} different), the allocator counts {self.pages_used}"
        )
        held = {request_id: account.reserved for request_id, account in self._accounts.items() if account.reserved}
        assert held == reserved, f"slots stay reserved after the step: {held}, of steps in flight {reserved}"

"""Where the tokens of one request live in the KV pool."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass
class RequestSlots:
    """The pages of a request, in order of position. Position p sits at ``pages[p // page_size]``."""

    page_size: int
    pages: list[int] = field(default_factory=list)  # only ever appended to
    _first_slot: int | None = field(default=None, init=False, repr=False, compare=False)
    _pages_seen: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def capacity(self) -> int:
        """Positions that have a slot."""
        return len(self.pages) * self.page_size

    @property
    def base(self) -> int | None:
        """Slot of position 0 when all slots are one range, else None (attention gathers).

        Asked several times a request and step, so it is worked out only when pages were added.
        """
        if self._pages_seen != len(self.pages):
            self._pages_seen = len(self.pages)
            first = self.pages[0]
            one_range = all(page == first + i for i, page in enumerate(self.pages))
            self._first_slot = first * self.page_size if one_range else None
        return self._first_slot

    def slots(self, start: int, stop: int) -> torch.Tensor:
        """Slots of the positions start..stop-1, int64 [stop - start]."""
        if stop > self.capacity:
            raise RuntimeError(f"position {stop - 1} has no slot: {len(self.pages)} pages of {self.page_size}")
        base = self.base
        if base is not None:
            return torch.arange(base + start, base + stop)
        positions = torch.arange(start, stop)
        pages = torch.tensor(self.pages)
        return pages[positions // self.page_size] * self.page_size + positions % self.page_size

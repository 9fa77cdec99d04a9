"""Where the tokens of one request live in the KV pool."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass
class RequestSlots:
    """The pages of a request, in order of position. Position p sits at ``pages[p // page_size]``."""

    page_size: int
    pages: list[int] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        """Positions that have a slot."""
        return len(self.pages) * self.page_size

    @property
    def base(self) -> int | None:
        """Slot of position 0 when all slots are one range, else None (attention gathers)."""
        if not self.pages:
            return None
        first = self.pages[0]
        if self.pages[-1] - first != len(self.pages) - 1:
            return None
        if any(page != first + i for i, page in enumerate(self.pages)):
            return None
        return first * self.page_size

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

"""Page allocator: which pages of the KV pool are free, contiguous runs first."""

from __future__ import annotations

FREE, TAKEN = b"\x01", 0


class PageAllocator:
    """Hands out pages by number. Prefers one contiguous run, aligned to its own length.

    Dense attention wants the slots of a request in one range, and the ranges of equal requests at equal distances, so
    that many requests are one strided batch; alignment makes that the common case. When no run is left, single pages
    are handed out and attention gathers.
    """

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._map = bytearray(FREE * num_pages)  # page -> 1 free, 0 taken
        self._free = num_pages

    @property
    def free_pages(self) -> int:
        return self._free

    def allocate(self, count: int) -> list[int] | None:
        """``count`` pages, or None when there are fewer: never a part of them."""
        if count > self._free:
            return None
        if count == 0:
            return []
        start = self._find_run(count)
        if start >= 0:
            pages = list(range(start, start + count))
        else:
            pages, at = [], -1
            for _ in range(count):
                at = self._map.find(FREE, at + 1)
                pages.append(at)
        self._take(pages)
        return pages

    def extend(self, last: int, count: int) -> list[int] | None:
        """``count`` more pages for an owner whose last page is ``last``: the ones behind it when they are free."""
        if count > self._free:
            return None
        follow = range(last + 1, last + 1 + count)
        if follow.stop <= self.num_pages and self._map[follow.start : follow.stop] == FREE * count:
            pages = list(follow)
            self._take(pages)
            return pages
        return self.allocate(count)

    def free(self, pages: list[int]) -> None:
        """Take pages back.

        Raises:
            RuntimeError: a page is already free. That is a bug of the caller; nothing was changed.
        """
        twice = [page for page in pages if self._map[page] != TAKEN]
        if twice or len(set(pages)) != len(pages):
            raise RuntimeError(f"pages {twice or pages} are freed twice")
        for page in pages:
            self._map[page] = FREE[0]
        self._free += len(pages)

    def _take(self, pages: list[int]) -> None:
        for page in pages:
            self._map[page] = TAKEN
        self._free -= len(pages)

    def _find_run(self, count: int) -> int:
        """Start of a free run: aligned to the power of two above ``count`` if there is one, else anywhere, else -1."""
        run = FREE * count
        align = 1 << (count - 1).bit_length()
        at = first = self._map.find(run)
        while at >= 0:
            if at % align == 0:
                return at
            at = self._map.find(run, (at // align + 1) * align)
        return first

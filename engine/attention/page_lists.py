"""Page tables as planners on the host want them: the pages of all requests in one list, and where each begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]


@dataclass(frozen=True)
class PageLists:
    """Of B requests, those that only pad included. All int32."""

    q_starts: Int32s
    """[B + 1], where each request's queries begin, and their end."""
    page_starts: Int32s
    """[B + 1], where each request's pages begin in ``pages``, and their end."""
    last_page: Int32s
    """[B], keys on each request's last page, 1..page size."""
    lengths: Int32s
    """[B], keys of each request."""
    mask_starts: Int32s
    """[B + 1], byte at which each request begins in a dense bit mask (see kernels/mask_bits.py), and its end."""
    pages: Int32s
    """[sum of pages in use], page numbers."""

    @property
    def arrays(self) -> tuple[Int32s, ...]:
        return (self.q_starts, self.page_starts, self.last_page, self.lengths, self.mask_starts, self.pages)


def list_pages(
    lengths: Sequence[int],
    pages: Sequence[Sequence[int]],
    queries: Sequence[int],
    page_size: int,
    *,
    batch: int = 0,
    padding_queries: int = 1,
) -> PageLists:
    """Lists of requests with ``lengths`` keys and so many ``queries`` each.

    Padded to ``batch`` requests with ``padding_queries`` each, and one key on page 0 to look at.

    Raises:
        ValueError: a request's pages do not reach its length.
    """
    padding = max(0, batch - len(lengths))
    kv = np.array([*lengths, *[1] * padding], dtype=np.int64)
    q = np.array([*queries, *[padding_queries] * padding], dtype=np.int64)
    used = -(-kv // page_size)
    listed: list[int] = []
    for mine, count in zip(pages, used.tolist(), strict=False):
        if len(mine) < count:
            raise ValueError(f"{count} pages are needed and {len(mine)} are listed")
        listed += mine[:count]
    return PageLists(
        q_starts=_starts(q),
        page_starts=_starts(used),
        last_page=(kv - (used - 1) * page_size).astype(np.int32),
        lengths=kv.astype(np.int32),
        mask_starts=_starts(-(-q * kv // 8)),
        pages=np.array([*listed, *[0] * padding], dtype=np.int32),
    )


def _starts(counts: NDArray[np.int64]) -> Int32s:
    return np.concatenate([[0], counts.cumsum()]).astype(np.int32)

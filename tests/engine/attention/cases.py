"""Batches over paged pools, and what attention has to give for them by a float64 softmax over each query's own keys."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from engine.attention.backend import ExtendBatch, VerifyBatch

LONELY = torch.device("cpu")


@dataclass(frozen=True)
class Heads:
    """Shape of the heads."""

    heads: int = 4
    kv_heads: int = 2
    dim: int = 16


class Pages:
    """A page table of shuffled pages over random pools, the state rows of a batch in no order."""

    def __init__(
        self,
        heads: Heads,
        most: list[int],
        page_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device = LONELY,
        seed: int = 0,
        scratch: int = 0,
    ) -> None:
        """``most``: tokens that each request may grow to. ``scratch``: slots behind the pages that are nobody's."""
        self.heads, self.page_size, self.dtype, self.device = heads, page_size, dtype, device
        self.random = random.Random(seed)
        self._generator = torch.Generator().manual_seed(seed)
        each = [-(-length // page_size) for length in most]
        numbers = list(range(sum(each)))
        self.random.shuffle(numbers)
        state_rows = len(most) + 2
        self.rows = self.random.sample(range(state_rows), len(most))
        self.table: list[list[int]] = []  # of each request
        pages = torch.randint(sum(each), (state_rows, max(each) + 1), generator=self._generator).int()
        for row, count in zip(self.rows, each, strict=True):
            mine, numbers = numbers[:count], numbers[count:]
            self.table.append(mine)
            pages[row, :count] = torch.tensor(mine)
        self.pages = pages.to(device)
        self.scratch = sum(each) * page_size
        self.k = self.noise(self.scratch + scratch, heads.kv_heads, heads.dim)
        self.v = self.noise(self.scratch + scratch, heads.kv_heads, heads.dim)

    def noise(self, *dims: int) -> torch.Tensor:
        return torch.randn(dims, generator=self._generator).to(self.device, self.dtype)

    def slots(self, request: int, start: int, stop: int) -> list[int]:
        size = self.page_size
        return [self.table[request][at // size] * size + at % size for at in range(start, stop)]

    def tensor(self, values: list[int] | list[list[int]], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=self.device)


@dataclass
class Verify:
    """A verify batch, its queries and the slots each of them sees, request-major."""

    pages: Pages
    batch: VerifyBatch
    q: torch.Tensor
    seen: list[list[int]]

    @property
    def wanted(self) -> torch.Tensor:
        return attended(self.pages, self.q, self.seen)


def tree_masks(width: int, pick: random.Random) -> list[int]:
    """Of a random tree of this many nodes: each sees itself and its ancestors."""
    masks = [1]
    for node in range(1, width):
        masks.append(masks[pick.randrange(node)] | 1 << node)
    return masks


def chain_masks(width: int) -> list[int]:
    return [(2 << node) - 1 for node in range(width)]


def signed(mask: int) -> int:
    """The 64 bits as int64 holds them."""
    return mask - (1 << 64) if mask >> 63 else mask


def verify_case(pages: Pages, lengths: list[int], width: int, masks: str = "tree", bound: int | None = None) -> Verify:
    """The ``width`` positions behind each prefix, as a tree, a chain, or all seeing all (``masks`` "all")."""
    tails = [pages.slots(r, length, length + width) for r, length in enumerate(lengths)]
    if masks == "all":
        bits = [[(1 << width) - 1] * width for _ in lengths]
    else:
        bits = [tree_masks(width, pages.random) if masks == "tree" else chain_masks(width) for _ in lengths]
    return tailed_case(pages, lengths, tails, bits, width, masked=masks != "all", bound=bound)


def node_case(pages: Pages, lengths: list[int], width: int, tail: int) -> Verify:
    """Draft nodes: ``tail`` keys in scratch slots, of which each query sees some, itself (the last ones) included."""
    tails = [list(range(at, at + tail)) for at in range(pages.scratch, pages.scratch + tail * len(lengths), tail)]
    bits = [[pages.random.getrandbits(tail) | 1 << (tail - width + node) for node in range(width)] for _ in lengths]
    return tailed_case(pages, lengths, tails, bits, width, masked=True)


def tailed_case(
    pages: Pages,
    lengths: list[int],
    tails: list[list[int]],
    bits: list[list[int]],
    width: int,
    *,
    masked: bool,
    bound: int | None = None,
) -> Verify:
    seen = []
    for request, (length, tail) in enumerate(zip(lengths, tails, strict=True)):
        prefix = pages.slots(request, 0, length)
        seen += [prefix + [slot for t, slot in enumerate(tail) if mask >> t & 1] for mask in bits[request]]
    lens = torch.full((pages.pages.shape[0],), 10**6, dtype=torch.int32, device=pages.device)  # nobody's: never read
    lens[pages.tensor(pages.rows)] = pages.tensor(lengths, torch.int32)
    batch = VerifyBatch(
        rows=pages.tensor(pages.rows),
        width=width,
        pages=pages.pages,
        lens=lens,
        page_size=pages.page_size,
        tail_loc=pages.tensor(tails).view(len(tails), -1),
        tail_mask=pages.tensor([[signed(mask) for mask in row] for row in bits]) if masked else None,
        bound=bound or max(lengths) + len(tails[0]),
    )
    q = pages.noise(len(lengths) * width, pages.heads.heads, pages.heads.dim)
    return Verify(pages, batch, q, seen)


@dataclass
class Extend:
    """A batch of prefill chunks, its queries and the slots each of them sees."""

    pages: Pages
    batch: ExtendBatch
    q: torch.Tensor
    seen: list[list[int]]

    @property
    def wanted(self) -> torch.Tensor:
        return attended(self.pages, self.q, self.seen)


def extend_case(pages: Pages, spans: list[tuple[int, int]]) -> Extend:
    """``spans``: tokens before each chunk, and in it."""
    seen = [
        pages.slots(request, 0, start + at + 1) for request, (start, chunk) in enumerate(spans) for at in range(chunk)
    ]
    chunks = [chunk for _, chunk in spans]
    batch = ExtendBatch(
        rows=pages.tensor(pages.rows),
        starts=pages.tensor([start for start, _ in spans], torch.int32),
        cu_q=pages.tensor([sum(chunks[:i]) for i in range(len(chunks) + 1)], torch.int32),
        max_q=max(chunks),
        pages=pages.pages,
        page_size=pages.page_size,
        host_pages=pages.table,
        host_lengths=[sum(span) for span in spans],
        host_q=chunks,
    )
    return Extend(pages, batch, pages.noise(sum(chunks), pages.heads.heads, pages.heads.dim), seen)


def attended(pages: Pages, q: torch.Tensor, seen: list[list[int]]) -> torch.Tensor:
    """float64 [N, heads * dim] on the CPU: each query over the slots it sees; zeros where it sees none."""
    heads = pages.heads
    group = heads.heads // heads.kv_heads
    k, v = pages.k.double().cpu(), pages.v.double().cpu()
    out = torch.zeros(q.shape, dtype=torch.float64)
    for query, (row, slots) in enumerate(zip(q.double().cpu(), seen, strict=True)):
        if slots:
            keys = k[slots].repeat_interleave(group, dim=1)  # [L, heads, dim]
            values = v[slots].repeat_interleave(group, dim=1)
            weights = (torch.einsum("hd,lhd->hl", row, keys) / heads.dim**0.5).softmax(-1)
            out[query] = torch.einsum("hl,lhd->hd", weights, values)
    return out.view(len(seen), -1)

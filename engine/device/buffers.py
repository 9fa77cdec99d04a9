"""Static tensors that the parts of a step hand each other: graphs read and write them at fixed addresses.

They are made when a width or a tree shape first runs, for the largest batch, and live as long as the engine: a graph
that was captured over them may be replayed at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kernels.tree import TreeBuffers
from engine.kernels.walk import WalkBuffers


@dataclass(frozen=True)
class WidthBuffers:
    """Of the decode requests that run ``width`` tokens each; a batch of B uses the first B (or B * width) rows."""

    width: int
    rows: torch.Tensor  # int64 [M], rows of the state
    loc: torch.Tensor  # int64 [M, width], slots of the step's tokens
    logits: torch.Tensor  # [M * width, vocab]
    aux: torch.Tensor | None  # [M * width, aux width]; None without a draft
    drawn: torch.Tensor  # int64 [M, width], the target's token at each node
    trees: TreeBuffers | None  # None for width 1


@dataclass(frozen=True)
class PathBuffers:
    """What the walks over trees of one shape gave; all of it in one block, for one copy to the host."""

    block: torch.Tensor  # int64: emitted, then path and kept as int32
    walks: WalkBuffers  # views of it, [M, E] and [M]

    def views(self, block: torch.Tensor) -> WalkBuffers:
        """Views of a copy of the block."""
        return walks_in(block, *self.walks.path.shape)


class Buffers:
    """Makes them once each."""

    def __init__(
        self,
        batch: int,
        vocab_size: int,
        aux_width: int,
        dtype: torch.dtype,
        device: torch.device,
        pad_row: int,
        scrap_slot: int,
    ) -> None:
        """``batch``: the largest. ``aux_width``: 0 without a draft. ``scrap_slot``: one that no request ever owns."""
        self.batch = batch
        self._vocab_size = vocab_size
        self._aux_width = aux_width
        self._dtype = dtype
        self._device = device
        self._pad_row = pad_row
        self._scrap_slot = scrap_slot
        self._widths: dict[int, WidthBuffers] = {}
        self._placed: dict[int, list[int]] = {}  # width -> rows that stand in its buffer
        self._paths: dict[tuple[int, int], PathBuffers] = {}
        self.ones = torch.ones(batch, dtype=torch.int32, device=device)
        """``kept`` of plain decodes, int32 [M]."""

    @property
    def bytes(self) -> int:
        """Memory of all that has been made."""
        blocks = [self.ones, *(paths.block for paths in self._paths.values())]
        for buffers in self._widths.values():
            blocks += [buffers.rows, buffers.loc, buffers.logits, buffers.drawn]
            if buffers.aux is not None:
                blocks.append(buffers.aux)
        return sum(block.nbytes for block in blocks)

    @property
    def widths(self) -> tuple[int, ...]:
        """Those that stand."""
        return tuple(sorted(self._widths))

    def more_bytes(self, width: int) -> int:
        """Memory that a width would take, 0 when it stands; its trees and paths are too small to count."""
        if width in self._widths:
            return 0
        return self.batch * width * (self._vocab_size + self._aux_width) * self._dtype.itemsize

    def of_width(self, width: int) -> WidthBuffers:
        """Those of one width. Rows begin as padding."""
        buffers = self._widths.get(width)
        if buffers is None:
            batch, device = self.batch, self._device
            loc = torch.full((batch, width), self._scrap_slot, dtype=torch.int64, device=device)
            aux = None
            if self._aux_width:
                aux = torch.zeros(batch * width, self._aux_width, dtype=self._dtype, device=device)
            buffers = self._widths[width] = WidthBuffers(
                width,
                torch.full((batch,), self._pad_row, dtype=torch.int64, device=device),
                loc,
                torch.zeros(batch * width, self._vocab_size, dtype=self._dtype, device=device),
                aux,
                torch.zeros(batch, width, dtype=torch.int64, device=device),
                _root_trees(batch, width, device) if width > 1 else None,
            )
        return buffers

    def of_paths(self, width: int, longest: int) -> PathBuffers:
        """Those of walks over trees of ``width`` nodes that keep up to ``longest`` of them."""
        buffers = self._paths.get((width, longest))
        if buffers is None:
            batch, cells = self.batch, self.batch * longest
            block = torch.zeros(cells + (cells + batch + 1) // 2, dtype=torch.int64, device=self._device)
            buffers = self._paths[width, longest] = PathBuffers(block, walks_in(block, batch, longest))
        return buffers

    def places(self, width: int, rows: list[int]) -> bool:
        """Whether ``rows`` must be copied into the width's buffer: they do not stand there yet. They do from now on."""
        if self._placed.get(width) == rows:
            return False
        self._placed[width] = rows
        return True

    def displace(self) -> None:
        """Forget what stands where: a step broke before its rows were copied, or they were overwritten."""
        self._placed.clear()

    def pad(self) -> None:
        """Make all rows padding: whatever runs then touches no request, not even a settle without its verify, which
        would find slots of the step before."""
        self.displace()
        for buffers in self._widths.values():
            buffers.rows.fill_(self._pad_row)
            buffers.loc.fill_(self._scrap_slot)


def walks_in(block: torch.Tensor, batch: int, longest: int) -> WalkBuffers:
    """The parts of a block: emitted int64 [batch, longest], path int32 [batch, longest], kept int32 [batch]."""
    cells = batch * longest
    narrow = block[cells:].view(torch.int32)
    return WalkBuffers(
        path=narrow[:cells].view(batch, longest),
        kept=narrow[cells : cells + batch],
        emitted=block[:cells].view(batch, longest),
    )


def _root_trees(batch: int, width: int, device: torch.device) -> TreeBuffers:
    """Trees whose nodes all hang on the root: something to warm up on."""
    trees = TreeBuffers.empty(batch, width, device)
    trees.tokens.zero_()
    trees.parents.zero_()[:, 0] = -1
    trees.depths.fill_(1)[:, 0] = 0
    trees.masks.fill_(1)
    trees.masks.bitwise_or_(1 << torch.arange(width, dtype=torch.int64, device=device))
    return trees


def first_trees(trees: TreeBuffers, batch: int) -> TreeBuffers:
    """The first ``batch`` trees: views."""
    return TreeBuffers(trees.tokens[:batch], trees.parents[:batch], trees.depths[:batch], trees.masks[:batch])


def first_walks(walks: WalkBuffers, batch: int) -> WalkBuffers:
    """The first ``batch`` walks: views."""
    return WalkBuffers(path=walks.path[:batch], kept=walks.kept[:batch], emitted=walks.emitted[:batch])

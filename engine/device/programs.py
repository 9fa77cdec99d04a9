"""The parts of a step as programs over static buffers, one for each graph key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.device.buffers import Buffers, first_trees
from engine.device.drafting import draft_trees
from engine.device.graphs import GraphKey, Program
from engine.device.parts import Parts
from engine.device.settle import settle_paths, settle_plain
from engine.device.target import run_target
from engine.kernels.tree import TreeBuffers

Grow = Callable[[torch.Tensor, int, int, TreeBuffers, int], None]
"""(rows int64 [B], steps, topk, out, bound on lengths): the draft stage's work."""


@dataclass(frozen=True)
class TreeShape:
    """What decides a step's tensors when it speculates."""

    steps: int
    topk: int
    width: int

    @property
    def longest(self) -> int:
        """Nodes that a walk keeps at most, the root included."""
        return min(self.steps, self.width - 1) + 1

    def keys(self, batch: int) -> tuple[GraphKey, GraphKey, GraphKey]:
        """Draft, verify, settle."""
        return (
            GraphKey("draft", batch, (self.steps, self.topk, self.width)),
            GraphKey("verify", batch, (self.width,)),
            GraphKey("settle", batch, (self.width, self.longest)),
        )


def plain_keys(batch: int) -> tuple[GraphKey, GraphKey]:
    """Decode, settle."""
    return GraphKey("decode", batch, (1,)), GraphKey("settle", batch, (1, 1))


class Programs:
    """Finds the program of a key."""

    def __init__(self, parts: Parts, buffers: Buffers) -> None:
        self._parts = parts
        self._buffers = buffers
        self.grow: Grow | None = None
        """Draws the trees in the head's place: for tests of the stages behind."""

    def __call__(self, key: GraphKey) -> Program:
        parts, buffers, batch = self._parts, self._buffers, key.batch
        if key.part == "draft":
            steps, topk, width = key.shape
            return lambda bound: self._draft(batch, steps, topk, width, bound)
        width = key.shape[0]
        if key.part in ("decode", "verify"):
            return lambda bound: run_target(parts, buffers.of_width(width), batch, bound)
        if key.part != "settle":
            raise ValueError(f"no part of a step is called {key.part!r}")
        if width == 1:
            return lambda bound: settle_plain(parts, buffers.of_width(1), batch, buffers.ones)
        paths = buffers.of_paths(*key.shape)
        return lambda bound: settle_paths(parts, buffers.of_width(width), paths, batch)

    def before_capture(self, key: GraphKey, bound: int) -> None:
        """Attention that plans on the host has to, also for padding."""
        if key.part in ("decode", "verify"):
            width, page_size = key.shape[0], self._parts.state.page_size
            attention = self._parts.attention
            attention.plan([], [], width=width, bucket=key.batch, page_size=page_size, bound=bound + width)

    def _draft(self, batch: int, steps: int, topk: int, width: int, bound: int) -> None:
        parts, buffers = self._parts, self._buffers.of_width(width)
        assert buffers.trees is not None
        rows, out = buffers.rows[:batch], first_trees(buffers.trees, batch)
        if self.grow is not None:
            self.grow(rows, steps, topk, out, bound)
            return
        assert parts.draft is not None
        draft_trees(parts.draft, parts.state, rows, steps, topk, out, bound)


def all_keys(batches: Sequence[int], shape: TreeShape | None) -> list[GraphKey]:
    """Everything that steps of these batch sizes run, speculating with ``shape`` or not at all."""
    keys: list[GraphKey] = []
    for batch in batches:
        keys += plain_keys(batch)
        if shape is not None:
            keys += shape.keys(batch)
    return keys

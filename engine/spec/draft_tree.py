"""Candidate trees: what a proposer hands to the verify step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True)
class DraftTrees:
    """One tree a request, all of the same width. Node 0 is the root: the newest token, not a draft.

    A parent precedes its children. The children of a node differ in their token.
    """

    tokens: torch.Tensor  # int64 [B, width]
    parents: torch.Tensor  # int64 [B, width], -1 for the root

    def __post_init__(self) -> None:
        if self.tokens.shape != self.parents.shape or self.tokens.dim() != 2:
            raise ValueError(f"tokens {list(self.tokens.shape)} and parents {list(self.parents.shape)} must be [B, n]")

    @property
    def width(self) -> int:
        return self.tokens.shape[1]

    def visibility(self) -> torch.Tensor:
        """bool [B, width, width]: a node sees itself and its ancestors."""
        return self._sees

    @cached_property
    def _sees(self) -> torch.Tensor:
        """Made once: the forward's mask and the depths are both read off it."""
        batch, width = self.parents.shape
        sees = torch.zeros(batch, width, width, dtype=torch.bool)
        rows = torch.arange(batch)
        sees[:, 0, 0] = True
        for node in range(1, width):
            sees[:, node] = sees[rows, self.parents[:, node]]
            sees[:, node, node] = True
        return sees

    def depths(self) -> torch.Tensor:
        """int64 [B, width]: 0 for the root."""
        return self.visibility().sum(dim=-1) - 1


def chain(tokens: torch.Tensor) -> DraftTrees:
    """Chains from int64 [B, 1 + drafts], the root first."""
    parents = torch.arange(-1, tokens.shape[1] - 1).expand(tokens.shape[0], -1)
    return DraftTrees(tokens, parents.contiguous())


def select_best(
    scores: torch.Tensor, tokens: torch.Tensor, parents: torch.Tensor, roots: torch.Tensor, draft_tokens: int
) -> DraftTrees:
    """The verify tree: the ``draft_tokens - 1`` best candidates of a pool, and the root (EAGLE-2, arXiv 2406.16858).

    scores, tokens, parents [B, pool]: cumulative log probability, target token id, index of the parent *in the pool*
    (-1: the root); a parent stands before its children. roots int64 [B].
    """
    batch, pool = scores.shape
    # A child is never likelier than its parent; the stable sort puts the parent first where they are equal.
    order = scores.sort(dim=-1, descending=True, stable=True).indices[:, : draft_tokens - 1]
    chosen = order.sort(dim=-1).values  # back in pool order: parents first
    place = torch.full((batch, pool + 1), -1, dtype=torch.int64)  # pool index -> node, the extra column for parent -1
    place.scatter_(1, chosen, torch.arange(1, chosen.shape[1] + 1).expand(batch, -1))
    place[:, pool] = 0
    parent_pool = parents.gather(1, chosen)
    parent_nodes = place.gather(1, torch.where(parent_pool < 0, pool, parent_pool))
    head = torch.full((batch, 1), -1, dtype=torch.int64)
    return DraftTrees(
        torch.cat([roots[:, None], tokens.gather(1, chosen)], dim=1), torch.cat([head, parent_nodes], dim=1)
    )

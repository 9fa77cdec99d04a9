"""The lossless walk: draw the target's token at a node, follow the child that equals it, else stop.

The children of a node are a deterministic top-k, not draws from the draft's distribution. Accepting child x with the
target's p(x) and falling back to the residual is then the same law as drawing once from p and looking whether a child
equals it: the output has exactly the target's distribution (the argument of SpecInfer, arXiv 2305.09781, section 4.3,
for a deterministic draft). Draws are keyed by seed and position, so the text does not depend on what was drafted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.spec.draft_tree import DraftTrees

DrawFn = Callable[[torch.Tensor, list[int], int], torch.Tensor]
"""(node of each request int64 [A], which requests, depth) -> the target's token there, int64 [A]."""


@dataclass(frozen=True)
class Walk:
    """What one request accepted."""

    nodes: list[int]
    """Kept nodes from the root down; their K and V are committed."""
    tokens: list[int]
    """Emitted tokens: the accepted drafts, then the one that no child equalled (the bonus token)."""

    @property
    def correct_drafts(self) -> int:
        return len(self.nodes) - 1


def walk_trees(trees: DraftTrees, draw: DrawFn, forced: Sequence[int] | None = None) -> list[Walk]:
    """Walk all trees of a step together, one depth at a time.

    ``forced``: nodes that each request keeps at most, whatever is drawn: its path then goes from first child to first
    child. For simulated acceptance; what is emitted follows the draft, and only the last token is the target's.
    """
    batch = trees.tokens.shape[0]
    tokens, parents = trees.tokens.tolist(), trees.parents.tolist()
    children: list[list[dict[int, int]]] = []  # request -> node -> token -> child
    for row_tokens, row_parents in zip(tokens, parents, strict=True):
        by_node: list[dict[int, int]] = [{} for _ in row_tokens]
        for node in range(1, len(row_tokens)):
            by_node[row_parents[node]].setdefault(row_tokens[node], node)
        children.append(by_node)
    walks = [Walk([0], []) for _ in range(batch)]
    alive, depth = list(range(batch)), 0
    while alive:
        at = torch.tensor([walks[i].nodes[-1] for i in alive])
        drawn = draw(at, alive, depth).tolist()
        still = []
        for i, token in zip(alive, drawn, strict=True):
            below = children[i][walks[i].nodes[-1]]  # in the order of the nodes
            child = below.get(token)
            if forced is not None:
                goes_on = bool(below) and len(walks[i].nodes) < forced[i]
                token, child = next(iter(below.items())) if goes_on else (token, None)
            walks[i].tokens.append(token)
            if child is not None:
                walks[i].nodes.append(child)
                still.append(i)
        alive, depth = still, depth + 1
    return walks

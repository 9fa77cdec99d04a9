"""Verify trees on the device: the best of a pool of candidates, with what attention needs of them.

The selection is EAGLE-2's (arXiv 2406.16858), and node for node that of engine/spec/draft_tree.py. Besides tokens and
parents a tree has its depths (a node's position is *committed + depth*) and, in 64 bits, who sees whom.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton

MAX_WIDTH = 64
"""Nodes that a mask of 64 bits can name."""


@dataclass(frozen=True)
class TreeBuffers:
    """Where trees are written. Node 0 is the root; parents stand before their children. All contiguous."""

    tokens: torch.Tensor  # int64 [B, W]
    parents: torch.Tensor  # int32 [B, W], -1 for the root
    depths: torch.Tensor  # int32 [B, W], 0 for the root
    masks: torch.Tensor  # int64 [B, W]; bit j of node i: i sees j, which is itself or an ancestor

    @classmethod
    def empty(cls, batch: int, width: int, device: torch.device | str) -> TreeBuffers:
        """Buffers with nothing in them yet."""
        shape = (batch, width)
        return cls(
            torch.empty(shape, dtype=torch.int64, device=device),
            torch.empty(shape, dtype=torch.int32, device=device),
            torch.empty(shape, dtype=torch.int32, device=device),
            torch.empty(shape, dtype=torch.int64, device=device),
        )


def build_tree(
    scores: torch.Tensor, tokens: torch.Tensor, parents: torch.Tensor, roots: torch.Tensor, out: TreeBuffers
) -> None:
    """The root and the W - 1 best candidates of each row's pool, in the pool's order; ties: the earlier in the pool.

    scores float32 [B, C]: cumulative log probabilities, a child's not above its parent's; -inf is allowed.
    tokens int64 [B, C]. parents int32 [B, C]: index in the pool, -1 for the root; a parent stands before its children.
    roots int64 [B].

    Raises:
        ValueError: W is above 64, or the pool holds less than W - 1 candidates.
    """
    width = _check_out(out)
    if width == 1:
        chain_tree(roots[:, None], out)
        return
    if scores.shape[1] < width - 1:
        raise ValueError(f"a tree of {width} nodes needs {width - 1} candidates, the pool holds {scores.shape[1]}")
    build = _build_tree_triton if use_triton(scores) else build_tree_reference
    build(scores, tokens, parents, roots, out)


def chain_tree(tokens: torch.Tensor, out: TreeBuffers) -> None:
    """Chains from int64 [B, W], the root first: every node is the child of the one before.

    Raises:
        ValueError: W is above 64.
    """
    _check_out(out)
    (_chain_tree_triton if use_triton(tokens) else chain_tree_reference)(tokens, out)


def build_tree_reference(
    scores: torch.Tensor, tokens: torch.Tensor, parents: torch.Tensor, roots: torch.Tensor, out: TreeBuffers
) -> None:
    """`build_tree` in torch, for W > 1."""
    batch, pool = scores.shape
    width = out.tokens.shape[1]
    # A child is never likelier than its parent; the stable sort puts the parent first where they are equal.
    order = scores.sort(dim=-1, descending=True, stable=True).indices[:, : width - 1]
    chosen = order.sort(dim=-1).values  # [B, W - 1], back in pool order: parents first
    place = torch.full((batch, pool + 1), -1, dtype=torch.int64, device=scores.device)  # pool index -> node
    place.scatter_(1, chosen, torch.arange(1, width, device=scores.device).expand(batch, -1))
    place[:, pool] = 0  # the extra column is for parent -1
    parent_pool = parents.gather(1, chosen).long()
    out.tokens[:, 0] = roots
    out.tokens[:, 1:] = tokens.gather(1, chosen)
    out.parents[:, 0] = -1
    out.parents[:, 1:] = place.gather(1, torch.where(parent_pool < 0, pool, parent_pool))
    out.masks[:, 0] = 1
    out.depths[:, 0] = 0
    for node in range(1, width):
        parent = out.parents[:, node, None].long()
        out.masks[:, node] = out.masks.gather(1, parent)[:, 0] | _bit(node)
        out.depths[:, node] = out.depths.gather(1, parent)[:, 0] + 1


def chain_tree_reference(tokens: torch.Tensor, out: TreeBuffers) -> None:
    """`chain_tree` in torch."""
    nodes = torch.arange(tokens.shape[1], device=tokens.device)  # [W]
    out.tokens.copy_(tokens)
    out.parents.copy_(nodes - 1)
    out.depths.copy_(nodes)
    out.masks.copy_((((1 << nodes) - 1) << 1) | 1)  # for node 63 too, where 1 << 64 would be nothing


def _bit(node: int) -> int:
    """1 << node as an int64 holds it: bit 63 is its sign."""
    return 1 << node if node < 63 else -(1 << 63)


def _check_out(out: TreeBuffers) -> int:
    width = out.tokens.shape[1]
    if width > MAX_WIDTH:
        raise ValueError(f"a tree of {width} nodes: at most {MAX_WIDTH}, a mask has as many bits")
    check_contiguous(tokens=out.tokens, parents=out.parents, depths=out.depths, masks=out.masks)
    return width


def _build_tree_triton(
    scores: torch.Tensor, tokens: torch.Tensor, parents: torch.Tensor, roots: torch.Tensor, out: TreeBuffers
) -> None:
    batch, pool = scores.shape
    width = out.tokens.shape[1]
    pool_block, node_block = next_power_of_2(pool), next_power_of_2(width)
    largest = max(pool_block, node_block)
    _build_tree_kernel[(batch,)](
        scores.float().contiguous(),
        tokens.contiguous(),
        parents.contiguous(),
        roots.contiguous(),
        out.tokens,
        out.parents,
        out.depths,
        out.masks,
        pool=pool,
        width=width,
        pool_block=pool_block,
        node_block=node_block,
        rounds=node_block.bit_length() - 1,
        num_warps=1 if largest <= 32 else 4 if largest <= 1024 else 8,  # one warp needs no shared memory to count
    )


def _chain_tree_triton(tokens: torch.Tensor, out: TreeBuffers) -> None:
    batch, width = tokens.shape
    _chain_tree_kernel[(batch,)](
        tokens.contiguous(),
        out.tokens,
        out.parents,
        out.depths,
        out.masks,
        width=width,
        block=next_power_of_2(width),
        num_warps=1,
    )


@jit(
    do_not_specialize_on_alignment=[
        "scores_ptr",
        "tokens_ptr",
        "parents_ptr",
        "roots_ptr",
        "out_tokens_ptr",
        "out_parents_ptr",
        "out_depths_ptr",
        "out_masks_ptr",
    ]
)
def _build_tree_kernel(
    scores_ptr: tl.tensor,
    tokens_ptr: tl.tensor,
    parents_ptr: tl.tensor,
    roots_ptr: tl.tensor,
    out_tokens_ptr: tl.tensor,
    out_parents_ptr: tl.tensor,
    out_depths_ptr: tl.tensor,
    out_masks_ptr: tl.tensor,
    pool: tl.constexpr,
    width: tl.constexpr,
    pool_block: tl.constexpr,
    node_block: tl.constexpr,
    rounds: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, pool_block)
    inside = at < pool
    score = tl.load(scores_ptr + row * pool + at, mask=inside, other=0.0)
    token = tl.load(tokens_ptr + row * pool + at, mask=inside, other=0)
    parent = tl.load(parents_ptr + row * pool + at, mask=inside, other=-1)

    # Scores as integers of the same order, 0 .. 2^32 - 1; -0.0 equals 0.0.
    bits = tl.where(score == 0.0, 0.0, score).to(tl.int32, bitcast=True)
    key = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) + 2147483648
    key = tl.where(inside, key, -1)
    # The key of the last candidate that is taken: the largest that W - 1 keys reach, found bit by bit.
    cutoff = tl.full([], 0, tl.int64)
    for i in range(32):
        higher = cutoff + (tl.full([], 2147483648, tl.int64) >> i)
        reached = tl.sum((key >= higher).to(tl.int32), axis=0)
        cutoff = tl.where(reached >= width - 1, higher, cutoff)
    # Of those equal to it, the first in the pool fill the tree.
    above = key > cutoff
    equal = key == cutoff
    room = width - 1 - tl.sum(above.to(tl.int32), axis=0)
    chosen = above | (equal & (tl.cumsum(equal.to(tl.int32), axis=0) <= room))
    node = tl.cumsum(chosen.to(tl.int32), axis=0)  # pool index -> node, where chosen
    chosen = chosen & (node < width)

    # From pool order to node order by way of the output: first tokens, pool indices (in depths) and pool parents ...
    first = row * width
    tl.store(out_tokens_ptr + first, tl.load(roots_ptr + row))
    tl.store(out_depths_ptr + first, -1)  # the root is what parent -1 means
    tl.store(out_parents_ptr + first, -2)
    tl.store(out_tokens_ptr + first + node, token, mask=chosen)
    tl.store(out_depths_ptr + first + node, at, mask=chosen)
    tl.store(out_parents_ptr + first + node, parent, mask=chosen)
    tl.debug_barrier()
    nodes = tl.arange(0, node_block)
    is_node = nodes < width
    pool_index = tl.load(out_depths_ptr + first + nodes, mask=is_node, other=-3)
    pool_parent = tl.load(out_parents_ptr + first + nodes, mask=is_node, other=-4)
    tl.debug_barrier()
    # ... then each node looks for the node that is its pool parent.
    is_parent = pool_parent[:, None] == pool_index[None, :]  # [node, parent]
    parents = tl.max(tl.where(is_parent, nodes[None, :], -1), axis=1)

    # Ancestors by doubling: after round r a mask holds itself and 2^r - 1 steps up, `up` is the node 2^r steps up.
    masks = tl.full([node_block], 1, tl.int64) << nodes.to(tl.int64)
    up = tl.maximum(parents, 0)
    for _ in tl.static_range(rounds):
        is_up = up[:, None] == nodes[None, :]
        masks = masks | tl.sum(tl.where(is_up, masks[None, :], 0), axis=1)
        up = tl.sum(tl.where(is_up, up[None, :], 0), axis=1)
    depths = tl.sum(((masks[:, None] >> nodes[None, :].to(tl.int64)) & 1).to(tl.int32), axis=1) - 1
    tl.store(out_parents_ptr + first + nodes, parents, mask=is_node)
    tl.store(out_depths_ptr + first + nodes, depths, mask=is_node)
    tl.store(out_masks_ptr + first + nodes, masks, mask=is_node)


@jit(
    do_not_specialize_on_alignment=[
        "tokens_ptr",
        "out_tokens_ptr",
        "out_parents_ptr",
        "out_depths_ptr",
        "out_masks_ptr",
    ]
)
def _chain_tree_kernel(
    tokens_ptr: tl.tensor,
    out_tokens_ptr: tl.tensor,
    out_parents_ptr: tl.tensor,
    out_depths_ptr: tl.tensor,
    out_masks_ptr: tl.tensor,
    width: tl.constexpr,
    block: tl.constexpr,
) -> None:
    nodes = tl.arange(0, block)
    inside = nodes < width
    at = tl.program_id(0).to(tl.int64) * width + nodes
    before = (tl.full([block], 1, tl.int64) << nodes.to(tl.int64)) - 1
    tl.store(out_tokens_ptr + at, tl.load(tokens_ptr + at, mask=inside, other=0), mask=inside)
    tl.store(out_parents_ptr + at, nodes - 1, mask=inside)
    tl.store(out_depths_ptr + at, nodes, mask=inside)
    tl.store(out_masks_ptr + at, (before << 1) | 1, mask=inside)

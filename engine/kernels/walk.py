"""The lossless walk of engine/spec/verify.py, on the device: from the root, follow the child that equals the draw.

With `forced` the walk keeps a given number of nodes whatever was drawn: acceptance is then simulated, for benchmarks
on random weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton


@dataclass(frozen=True)
class WalkBuffers:
    """What walks are written to; D + 1 is the most nodes that a walk keeps. All contiguous."""

    path: torch.Tensor  # int32 [B, D + 1], kept nodes from the root down; the last one is repeated to the end
    kept: torch.Tensor  # int32 [B], nodes kept = tokens emitted, at least 1
    emitted: torch.Tensor  # int64 [B, D + 1], accepted drafts, then the bonus token; -1 behind them

    @classmethod
    def empty(cls, batch: int, most: int, device: torch.device | str) -> WalkBuffers:
        """Buffers with nothing in them yet, for walks of at most `most` = D + 1 nodes."""
        return cls(
            torch.empty((batch, most), dtype=torch.int32, device=device),
            torch.empty(batch, dtype=torch.int32, device=device),
            torch.empty((batch, most), dtype=torch.int64, device=device),
        )


def walk(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    drawn: torch.Tensor,
    out: WalkBuffers,
    forced: torch.Tensor | None = None,
) -> None:
    """Walk every row's tree. tokens int64, parents int32 (-1: the root), drawn int64: [B, W] each.

    At a node: emit the target's token there (`drawn`); go on to its first child that carries that token; stop without
    one, or at D + 1 nodes. forced int32 [B]: keep min(forced, nodes down the first children) nodes, going to the
    *first* child and emitting its token whatever was drawn; the last node emits what was drawn there.
    """
    check_contiguous(path=out.path, kept=out.kept, emitted=out.emitted)
    (_walk_triton if use_triton(tokens) else walk_reference)(tokens, parents, drawn, out, forced)


def walk_reference(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    drawn: torch.Tensor,
    out: WalkBuffers,
    forced: torch.Tensor | None = None,
) -> None:
    """`walk` in torch, all rows one depth at a time."""
    batch = tokens.shape[0]
    most = out.path.shape[1]
    at = torch.zeros((batch, 1), dtype=torch.int64, device=tokens.device)
    alive = torch.ones((batch, 1), dtype=torch.bool, device=tokens.device)
    out.kept.zero_()
    for step in range(most):
        token = drawn.gather(1, at)
        matches = parents == at  # [B, W]
        if forced is None:
            matches = matches & (tokens == token)
        follow = alive & matches.any(dim=1, keepdim=True) & (step + 1 < most)
        if forced is not None:
            follow = follow & (step + 1 < forced[:, None])
        child = matches.to(torch.int8).argmax(dim=1, keepdim=True)  # the first one
        if forced is not None:
            token = torch.where(follow, tokens.gather(1, child), token)
        out.path[:, step] = at[:, 0]
        out.emitted[:, step] = torch.where(alive, token, -1)[:, 0]
        out.kept.add_(alive[:, 0])
        at = torch.where(follow, child, at)
        alive = follow


def _walk_triton(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    drawn: torch.Tensor,
    out: WalkBuffers,
    forced: torch.Tensor | None = None,
) -> None:
    batch, width = tokens.shape
    _walk_kernel[(batch,)](
        tokens.contiguous(),
        parents.contiguous(),
        drawn.contiguous(),
        out.kept if forced is None else forced.contiguous(),
        out.path,
        out.kept,
        out.emitted,
        width=width,
        most=out.path.shape[1],
        block=next_power_of_2(width),
        has_forced=forced is not None,
        num_warps=1,  # reductions stay within the warp
    )


@jit(
    do_not_specialize_on_alignment=[
        "tokens_ptr",
        "parents_ptr",
        "drawn_ptr",
        "forced_ptr",
        "path_ptr",
        "kept_ptr",
        "emitted_ptr",
    ]
)
def _walk_kernel(
    tokens_ptr: tl.tensor,
    parents_ptr: tl.tensor,
    drawn_ptr: tl.tensor,
    forced_ptr: tl.tensor,
    path_ptr: tl.tensor,
    kept_ptr: tl.tensor,
    emitted_ptr: tl.tensor,
    width: tl.constexpr,
    most: tl.constexpr,
    block: tl.constexpr,
    has_forced: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    nodes = tl.arange(0, block)
    inside = nodes < width
    tokens = tl.load(tokens_ptr + row * width + nodes, mask=inside, other=0)
    parents = tl.load(parents_ptr + row * width + nodes, mask=inside, other=-2)
    drawn = tl.load(drawn_ptr + row * width + nodes, mask=inside, other=0)
    limit = tl.full([], most, tl.int32)
    if has_forced:
        limit = tl.minimum(limit, tl.load(forced_ptr + row))
    at = tl.full([], 0, tl.int32)
    alive = tl.full([], 1, tl.int32)
    kept = tl.full([], 0, tl.int32)
    for step in range(most):
        token = tl.sum(tl.where(nodes == at, drawn, 0), axis=0)
        matches = parents == at
        if not has_forced:
            matches = matches & (tokens == token)
        child = tl.min(tl.where(matches, nodes, block), axis=0)
        follow = (alive != 0) & (child < block) & (step + 1 < limit)
        if has_forced:
            token = tl.where(follow, tl.sum(tl.where(nodes == child, tokens, 0), axis=0), token)
        tl.store(path_ptr + row * most + step, at)
        tl.store(emitted_ptr + row * most + step, tl.where(alive != 0, token, -1))
        kept += alive
        at = tl.where(follow, child, at)
        alive = follow.to(tl.int32)
    tl.store(kept_ptr + row, kept)

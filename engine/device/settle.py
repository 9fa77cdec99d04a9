"""The accept and sync stages for decode requests: what is kept, where it lies, and how the draft follows.

Both are one program, for nothing between them is for the host: walk, move the kept path's K and V to the front, give
the draft its K and V of the same path, advance lengths and newest tokens.
"""

from __future__ import annotations

import torch

from engine.device.buffers import PathBuffers, WidthBuffers, first_trees, first_walks
from engine.device.parts import Draft, Parts
from engine.device.state import DeviceState
from engine.kernels.advance import advance
from engine.kernels.compaction import compact
from engine.kernels.keyed import keyed_uniform
from engine.kernels.ring import push
from engine.kernels.walk import WalkBuffers, walk


def settle_plain(parts: Parts, buffers: WidthBuffers, batch: int, ones: torch.Tensor) -> None:
    """One token each: it is the newest now, and its hidden states wait for the draft. ``ones``: int32 [>= batch]."""
    state, rows, drawn = parts.state, buffers.rows[:batch], buffers.drawn[:batch]
    if parts.draft is not None and buffers.aux is not None:
        push(rows, buffers.aux[:batch], drawn.view(-1), state.aux_ring, state.ring_ids, state.ring_len)
    advance(rows, ones[:batch], drawn, state.tokens, state.lens, state.pad_row)


def settle_paths(parts: Parts, buffers: WidthBuffers, paths: PathBuffers, batch: int) -> None:
    """Walk the trees and keep what the target agrees with, in the target's pool, the draft's, and the state."""
    assert buffers.trees is not None
    state, pool = parts.state, parts.pool
    rows, loc = buffers.rows[:batch], buffers.loc[:batch]
    trees, walks = first_trees(buffers.trees, batch), first_walks(paths.walks, batch)
    forced = None
    if parts.simulate_accept is not None:
        forced = _forced(state, rows, parts.simulate_accept, walks.path.shape[1])
    walk(trees.tokens, trees.parents, buffers.drawn[:batch], walks, forced)
    compact(pool.k, pool.v, walks.path, walks.kept, loc)
    if parts.draft is not None and buffers.aux is not None:
        _write_paths(parts.draft, state, rows, buffers.aux[: batch * buffers.width], walks, loc)
    advance(rows, walks.kept, walks.emitted, state.tokens, state.lens, state.pad_row)


def _write_paths(
    draft: Draft, state: DeviceState, rows: torch.Tensor, aux: torch.Tensor, walks: WalkBuffers, loc: torch.Tensor
) -> None:
    """Draft K and V of the kept paths, from the target's hidden states. aux [B * width, aux width], loc [B, width].

    Behind the kept part of a path the rows repeat its last node and write to positions that are not committed: whoever
    gets there later writes them again first.
    """
    (batch, longest), width = walks.path.shape, loc.shape[1]
    first = torch.arange(0, batch * width, width, device=rows.device)  # row of each root in aux
    g = draft.head.fuse(aux[(first[:, None] + walks.path).reshape(-1)])  # [B * E, hidden]
    inputs = draft.head.read(walks.emitted.clamp_min(0).reshape(-1), g)  # position t reads token t + 1
    positions = state.following(rows, longest)
    draft.head.write_kv(inputs, positions.reshape(-1), loc[:, :longest].reshape(-1), draft.pool)
    last = torch.arange(-1, batch * longest - 1, longest, device=rows.device) + walks.kept
    state.draft_g.index_copy_(0, rows, g[last])


def _forced(state: DeviceState, rows: torch.Tensor, accept: float, longest: int) -> torch.Tensor:
    """Nodes that each walk keeps so that the mean is ``accept``: its whole part, or one more. int32 [B]"""
    whole = int(accept)
    uniforms = keyed_uniform(state.seeds[rows], state.lens[rows].long())
    return (whole + (uniforms < accept - whole).int()).clamp_max(longest).int()

"""Attention on CPU: dense views of the KV pool, one call for every run of equally spaced requests.

A request whose slots are one range is a view. Requests whose ranges lie at equal distances are one strided batch, so a
decode step of many requests is a few kernel calls and no copy. Requests with scattered pages are gathered, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.kv.pool import KvPool
from engine.kv.request_slots import RequestSlots

CALL_COST = 4096
"""What one more kernel call costs, in key positions read: sets when padding a batch beats splitting it."""


@dataclass(frozen=True)
class Segment:
    """The new tokens of one request: they lie one behind the other in the flat batch."""

    slots: RequestSlots
    start: int
    """Committed tokens: keys that every new token sees."""
    width: int
    """New tokens; their own keys lie at positions start..start + width - 1."""
    tree: torch.Tensor | None = None
    """bool [width, width], row sees column; None is causal."""

    @property
    def length(self) -> int:
        return self.start + self.width


@dataclass
class _Group:
    count: int
    width: int
    length: int  # longest
    base: int  # slot of the first request's position 0
    stride: int  # slots from one request to the next
    loc: torch.Tensor | None  # slots to gather when the request is scattered (count 1)
    mask: torch.Tensor | None  # additive [count | 1, 1, group * width, length], rows folded as in `fold_heads`


def fold_heads(q: torch.Tensor, width: int, kv_heads: int) -> torch.Tensor:
    """[n * T, heads, d] -> [n, kv_heads, heads // kv_heads * T, d]: the queries that share keys become rows."""
    rows, heads, dim = q.shape
    n, group = rows // width, heads // kv_heads
    if width == 1:
        return q.view(n, kv_heads, group, dim)
    return q.reshape(n, width, kv_heads, group, dim).permute(0, 2, 3, 1, 4).reshape(n, kv_heads, group * width, dim)


def unfold_heads(out: torch.Tensor, width: int) -> torch.Tensor:
    """The inverse of `fold_heads`, flattened: [n * T, heads * d]."""
    n, kv_heads, rows, dim = out.shape
    if width == 1:
        return out.reshape(n, kv_heads * rows * dim)
    group = rows // width
    folded = out.reshape(n, kv_heads, group, width, dim).permute(0, 3, 1, 2, 4)
    return folded.reshape(n * width, kv_heads * group * dim)


def additive_mask(visible: torch.Tensor, group: int, dtype: torch.dtype) -> torch.Tensor:
    """bool [n, T, L] -> 0 / -inf [n, 1, group * T, L], the rows repeated for each head of a group."""
    n, width, length = visible.shape
    mask = torch.zeros(n, width, length, dtype=dtype).masked_fill_(~visible, float("-inf"))
    return mask[:, None, None].expand(n, 1, group, width, length).reshape(n, 1, group * width, length)


class AttentionPlan:
    """Groups the segments of a step once; every layer runs over the same groups."""

    def __init__(self, segments: Sequence[Segment], pool: KvPool, heads: int) -> None:
        self._kv_heads = pool.kv_heads
        self._dtype = pool.data.dtype
        self._group_size = heads // pool.kv_heads
        self._slots = pool.data.shape[2]
        self.groups = [self._make_group(run) for run in self._runs(segments)]

    def _runs(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        runs: list[list[Segment]] = []
        for segment in segments:
            if runs and self._joins(runs[-1], segment):
                runs[-1].append(segment)
            else:
                runs.append([segment])
        return runs

    def _joins(self, run: list[Segment], new: Segment) -> bool:
        base, last, first = new.slots.base, run[-1].slots.base, run[0].slots.base
        if base is None or last is None or first is None or new.width != run[0].width or new.width > 64:
            return False
        stride = base - last
        if stride <= 0 or (len(run) > 1 and stride != last - (run[-2].slots.base or 0)):
            return False
        longest = max(new.length, *(segment.length for segment in run))
        if base + longest > self._slots:  # the view of the last request would leave the pool
            return False
        padding = longest * (len(run) + 1) - new.length - sum(segment.length for segment in run)
        return padding <= CALL_COST * len(run)

    def _make_group(self, run: list[Segment]) -> _Group:
        first = run[0]
        base = first.slots.base
        length = max(segment.length for segment in run)
        stride = 0 if len(run) == 1 else (run[1].slots.base or 0) - (base or 0)
        loc = first.slots.slots(0, length) if base is None else None
        return _Group(len(run), first.width, length, base or 0, stride, loc, self._mask(run, length))

    def _mask(self, run: list[Segment], length: int) -> torch.Tensor | None:
        width = run[0].width
        if width == 1:
            if all(segment.length == length for segment in run):
                return None
            lengths = torch.tensor([segment.length for segment in run])
            visible = (torch.arange(length) < lengths[:, None])[:, None]
        else:
            starts = torch.tensor([segment.start for segment in run])
            causal = torch.ones(width, width, dtype=torch.bool).tril_()
            own = torch.stack([causal if segment.tree is None else segment.tree for segment in run])  # [n, T, T]
            visible = (torch.arange(length) < starts[:, None])[:, None].expand(-1, width, -1).contiguous()
            columns = (starts[:, None] + torch.arange(width))[:, None].expand(-1, width, -1)
            visible.scatter_(2, columns, own)
        return additive_mask(visible, self._group_size, self._dtype)

    def run(self, layer: int, q: torch.Tensor, pool: KvPool) -> torch.Tensor:
        """Attend one layer. q [N, heads, head_dim], the flat batch in segment order -> [N, heads * head_dim]."""
        outs, at = [], 0
        for group in self.groups:
            rows = group.count * group.width
            folded = fold_heads(q[at : at + rows], group.width, self._kv_heads)
            at += rows
            k, v = self._view(layer, group, pool)
            out = F.scaled_dot_product_attention(folded, k, v, attn_mask=group.mask)
            outs.append(unfold_heads(out, group.width))
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def _view(self, layer: int, group: _Group, pool: KvPool) -> tuple[torch.Tensor, torch.Tensor]:
        heads = self._kv_heads
        if group.loc is not None:
            k, v = pool.read(layer, group.loc)
            return k[None], v[None]
        _, both, slots, dim = pool.data.shape
        size = (group.count, heads, group.length, dim)
        strides = (group.stride * dim, slots * dim, dim, 1)
        keys = (layer * both * slots + group.base) * dim  # offset in the pool's storage
        values = keys + heads * slots * dim
        return pool.data.as_strided(size, strides, keys), pool.data.as_strided(size, strides, values)

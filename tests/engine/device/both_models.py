"""The CPU's model and the device's on the same weights, requests and slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F

from engine.attention.dense import Segment
from engine.device.layer_parts import Attend
from engine.device.pool import DevicePool
from engine.kv.request_slots import RequestSlots
from engine.models.linear import Arithmetic, choose_arithmetic

CPU = torch.device("cpu")
PAGE_SIZE = 16
SLOTS = 8 * PAGE_SIZE
CONTEXT = 128

TREE = [-1, 0, 0, 1, 1, 2]
"""Parents of a verify tree of 6 nodes."""


def scattered_slots() -> list[RequestSlots]:
    """Two requests whose pages lie among each other's."""
    return [RequestSlots(PAGE_SIZE, [5, 0, 3]), RequestSlots(PAGE_SIZE, [2, 7, 1])]


def arithmetic_of(dtype: torch.dtype) -> Arithmetic:
    return choose_arithmetic("float64" if dtype == torch.float64 else "float32")


def tree_visibility(parents: Sequence[int]) -> torch.Tensor:
    """bool [n, n]: a node sees itself and its ancestors."""
    sees = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return sees


def tree_depths(parents: Sequence[int]) -> torch.Tensor:
    return tree_visibility(parents).sum(1) - 1


def flat_loc(segments: Sequence[Segment]) -> torch.Tensor:
    """Slots of the new tokens of all segments."""
    return torch.cat([s.slots.slots(s.start, s.length) for s in segments])


def dense_attend(segments: Sequence[Segment], pool: DevicePool) -> Attend:
    """Attention by gathering every key: for tests of the model apart from any backend."""

    def attend(layer: int, q: torch.Tensor) -> torch.Tensor:
        outs = []
        for rows, segment in zip(q.split([s.width for s in segments]), segments, strict=True):
            loc = segment.slots.slots(0, segment.length)
            outs.append(attend_slots(rows, pool, layer, loc, segment.tree))
        return torch.cat(outs)

    return attend


def attend_slots(
    q: torch.Tensor, pool: DevicePool, layer: int, loc: torch.Tensor, own: torch.Tensor | None
) -> torch.Tensor:
    """q [n, heads, d] over the keys at ``loc``; of the last ones each query sees what ``own`` [n, m] says (None: the
    last n are the queries' own, causal) -> [n, heads * d]"""
    n, heads, dim = q.shape
    own = torch.ones(n, n, dtype=torch.bool).tril() if own is None else own
    visible = F.pad(own, (loc.numel() - own.shape[1], 0), value=True)
    k, v = pool.keys[layer][loc].transpose(0, 1), pool.values[layer][loc].transpose(0, 1)  # [kv_heads, keys, d]
    out = F.scaled_dot_product_attention(q.transpose(0, 1)[None], k[None], v[None], visible, enable_gqa=True)
    return out[0].transpose(0, 1).reshape(n, heads * dim)


def half_split(keys: torch.Tensor) -> torch.Tensor:
    """Keys in the CPU model's order, pairs side by side -> the device's, halves behind each other."""
    pairs = keys.view(*keys.shape[:-1], -1, 2)
    return pairs.transpose(-1, -2).flatten(-2)


def assert_same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    tolerance = 1e-10 if wanted.dtype == torch.float64 else 2e-4
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


def assert_same_kv(pool: DevicePool, data: torch.Tensor) -> None:
    """``data``: the CPU's pool, [layers, 2 * kv_heads, slots, head_dim]. All slots, written or not."""
    keys, values = data.transpose(1, 2).chunk(2, dim=2)
    assert_same(pool.k[:, :SLOTS], half_split(keys))
    assert_same(pool.v[:, :SLOTS], values)


def copied(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The device's models empty what they are given."""
    return dict(tensors)

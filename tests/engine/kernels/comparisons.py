"""Each kernel beside its torch reference, on any device: interpreted on the CPU here, compiled in tests/gpu.

A comparison makes its inputs on the CPU from a seed, runs the public function on `device` and the reference on the CPU.
"""

from __future__ import annotations

import dataclasses

import torch

from engine.kernels import (
    advance,
    argmax,
    compaction,
    gated_product,
    keyed,
    ring,
    rms_norm,
    rope,
    silu,
    tree,
    upcoming,
    walk,
)

DTYPES = [torch.float32, torch.bfloat16, torch.float16]

Pool = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""scores, tokens, parents, roots."""


def made(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Normal values, the same on every machine."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def integers(low: int, high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """int64, low <= value < high."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal to rounding: in bfloat16 and float16 a last bit may differ, for the interpreter cuts where a GPU rounds."""
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual.cpu(), expected)


def rms_norms(n: int, hidden: int, dtype: torch.dtype, device: str) -> None:
    """rms_norm, of rows that lie apart."""
    x, weight = made(n, hidden + 16, dtype=dtype), made(hidden, dtype=dtype, seed=1)
    expected = rms_norm.rms_norm_reference(x[:, :hidden], weight, 1e-5)
    assert_close(rms_norm.rms_norm(x.to(device)[:, :hidden], weight.to(device), 1e-5), expected)


def add_rms_norms(n: int, hidden: int, dtype: torch.dtype, device: str) -> None:
    """add_rms_norm: the norm, and the residual that is left behind."""
    x, residual, weight = (made(*s, dtype=dtype, seed=i) for i, s in enumerate([(n, hidden), (n, hidden), (hidden,)]))
    on_device = residual.to(device, copy=True)
    out = rms_norm.add_rms_norm(x.to(device), on_device, weight.to(device), 1e-5)
    assert_close(out, rms_norm.add_rms_norm_reference(x, residual, weight, 1e-5))
    assert_close(on_device, residual)


def silu_muls(n: int, inner: int, together: int, dtype: torch.dtype, device: str) -> None:
    """silu_mul, with values whose exponentials overflow."""
    gate_up = made(n, 2 * inner, dtype=dtype)
    gate_up[0, 0], gate_up[0, together - 1] = -200, 200
    assert_close(silu.silu_mul(gate_up.to(device), together), silu.silu_mul_reference(gate_up, together))


def gated_products(
    n: int, hidden: int, inner: int, dtype: torch.dtype, device: str, *, in_one: bool | None = None
) -> None:
    """gated_product, of products around 1, with gates whose exponentials overflow. Sums over ``hidden`` come in another
    order than torch's, so a product may be rounded to its other neighbour, and the result moves by about as much."""
    x = made(n, hidden, dtype=dtype)
    gate_up = (made(2 * inner, hidden, dtype=torch.float32, seed=1) * hidden**-0.5).to(dtype)
    gate_up[0] *= 50
    out = gated_product.gated_product(x.to(device), gate_up.to(device), in_one=in_one)
    assert out.dtype == dtype
    expected = gated_product.gated_product_reference(x, gate_up)
    torch.testing.assert_close(out.cpu(), expected, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


def ropes(n: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: str) -> None:
    """rope_and_write into one layer of a pool of several: q, and what the whole pool holds afterwards."""
    slots = 2 * n + 3
    qkv = made(n, (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    table = rope.rope_table(head_dim, 4096, 1e4, None, "cpu")
    positions = integers(0, 4096, n)
    loc = torch.randperm(slots, generator=torch.Generator().manual_seed(0))[:n]
    pools = made(2, 3, slots, kv_heads, head_dim, dtype=dtype)
    on_device = pools.to(device, copy=True)
    q = rope.rope_and_write(
        qkv.to(device),
        table.to(device),
        positions.to(device),
        loc.to(device),
        on_device[0, 1],
        on_device[1, 1],
        heads,
    )
    expected = rope.rope_and_write_reference(qkv, table, positions, loc, pools[0, 1], pools[1, 1], heads)
    assert q.is_contiguous()
    assert_close(q, expected)
    assert_close(on_device, pools)


def greedys(n: int, vocab: int, dtype: torch.dtype, device: str) -> None:
    """greedy over few distinct values: every row has ties, also across parts, and one row is nothing but -inf."""
    logits = integers(-9, 9, n, vocab).to(dtype)
    logits[n // 2] = float("-inf")
    chosen = argmax.greedy(logits.to(device))
    assert chosen.dtype == torch.int64
    assert torch.equal(chosen.cpu(), argmax.greedy_reference(logits))


def keyed_draws(n: int, device: str) -> None:
    """keyed_uniform, bit for bit, of seeds from all of int64."""
    seeds, positions = integers(-(2**63), 2**63 - 1, n), integers(0, 2**40, n, seed=1)
    draws = keyed.keyed_uniform(seeds.to(device), positions.to(device))
    assert draws.dtype == torch.float64
    assert torch.equal(draws.cpu(), keyed.keyed_uniform_reference(seeds, positions))


def random_pool(batch: int, pool: int, ties: bool = True, seed: int = 0) -> Pool:
    """Candidates as a draft makes them; with ties also between child and parent."""
    parents = (torch.rand(batch, pool, generator=torch.Generator().manual_seed(seed)) * (torch.arange(pool) + 1)).long()
    parents = parents - 1  # -1 .. i - 1 for candidate i
    falls = integers(0, 3, batch, pool, seed=seed + 1).float() if ties else made(batch, pool, dtype=torch.float32).abs()
    falls[:, pool // 2] = float("inf")
    scores = torch.zeros(batch, pool)
    for i in range(pool):
        parent = parents[:, i]
        above = torch.where(parent < 0, 0.0, scores.gather(1, parent.clamp_min(0)[:, None])[:, 0])
        scores[:, i] = above - falls[:, i]
    tokens = integers(0, 1 << 40, batch, pool, seed=seed + 2)
    return scores, tokens, parents.int(), integers(0, 1 << 40, batch, seed=seed + 3)


def assert_same_buffers(actual: object, expected: object) -> None:
    """Two TreeBuffers, or two WalkBuffers, hold the same."""
    for field in dataclasses.fields(expected):  # type: ignore[arg-type]
        got, wanted = getattr(actual, field.name), getattr(expected, field.name)
        assert got.dtype == wanted.dtype
        assert torch.equal(got.cpu(), wanted), field.name


def built_trees(batch: int, pool: int, width: int, device: str, ties: bool = True) -> None:
    """build_tree."""
    scores, tokens, parents, roots = random_pool(batch, pool, ties)
    expected, out = tree.TreeBuffers.empty(batch, width, "cpu"), tree.TreeBuffers.empty(batch, width, device)
    tree.build_tree_reference(scores, tokens, parents, roots, expected)
    tree.build_tree(scores.to(device), tokens.to(device), parents.to(device), roots.to(device), out)
    assert_same_buffers(out, expected)


def chain_trees(batch: int, width: int, device: str) -> None:
    """chain_tree."""
    tokens = integers(0, 1 << 40, batch, width)
    expected, out = tree.TreeBuffers.empty(batch, width, "cpu"), tree.TreeBuffers.empty(batch, width, device)
    tree.chain_tree_reference(tokens, expected)
    tree.chain_tree(tokens.to(device), out)
    assert_same_buffers(out, expected)


def random_trees(batch: int, width: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """tokens, parents, drawn [batch, width]: few tokens, so that siblings repeat one, and draws that children carry."""
    tokens = integers(0, 3, batch, width, seed=seed)
    reach = torch.rand(batch, width, generator=torch.Generator().manual_seed(seed + 1))
    parents = (reach.sqrt() * torch.arange(width)).int()  # 0 .. i - 1, nearer to i - 1: deep trees
    parents[:, 0] = -1
    return tokens, parents, integers(0, 3, batch, width, seed=seed + 2)


def walks(batch: int, width: int, most: int, device: str, forced: bool = False) -> None:
    """walk, by the draws or by force."""
    tokens, parents, drawn = random_trees(batch, width)
    limits = integers(1, most + 2, batch, seed=9).int() if forced else None
    expected, out = walk.WalkBuffers.empty(batch, most, "cpu"), walk.WalkBuffers.empty(batch, most, device)
    walk.walk_reference(tokens, parents, drawn, expected, limits)
    on_device = None if limits is None else limits.to(device)
    walk.walk(tokens.to(device), parents.to(device), drawn.to(device), out, on_device)
    assert_same_buffers(out, expected)


def random_paths(batch: int, width: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """path int32 [batch, most], kept int32 [batch] as a walk leaves them."""
    path = torch.zeros(batch, most, dtype=torch.int32)
    kept = integers(1, most + 1, batch).int()
    for row in range(batch):
        inner = torch.randperm(width - 1, generator=torch.Generator().manual_seed(row))[: int(kept[row]) - 1] + 1
        climb = [0, *sorted(inner.tolist())]
        path[row] = torch.tensor(climb + climb[-1:] * (most - len(climb)))
    return path, kept


def compactions(
    batch: int, width: int, most: int, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: str
) -> None:
    """compact: the whole of both pools afterwards."""
    slots = batch * width + 5
    pools = made(2, layers, slots, kv_heads, head_dim, dtype=dtype)
    path, kept = random_paths(batch, width, most)
    loc = torch.randperm(slots, generator=torch.Generator().manual_seed(0))[: batch * width].view(batch, width)
    on_device = pools.to(device, copy=True)
    compaction.compact(on_device[0], on_device[1], path.to(device), kept.to(device), loc.to(device))
    compaction.compact_reference(pools[0], pools[1], path, kept, loc)
    assert torch.equal(on_device.cpu(), pools)


def advances(batch: int, emitted: int, device: str) -> None:
    """advance, with pad rows among the rows and one row that kept nothing."""
    pad = batch + 7
    rows = torch.randperm(pad, generator=torch.Generator().manual_seed(0))[:batch]
    rows[batch // 2 :: 5] = pad
    kept, tokens = integers(1, emitted + 1, batch).int(), integers(0, 1 << 40, batch, emitted)
    kept[0] = 0
    state = integers(0, 1 << 40, pad + 1, seed=1), integers(0, 1000, pad + 1, seed=2).int()
    on_device = [t.to(device, copy=True) for t in state]
    advance.advance(rows.to(device), kept.to(device), tokens.to(device), on_device[0], on_device[1], pad)
    advance.advance_reference(rows, kept, tokens, state[0], state[1], pad)
    assert torch.equal(on_device[0].cpu(), state[0])
    assert torch.equal(on_device[1].cpu(), state[1])


def pushes(batch: int, width: int, dtype: torch.dtype, device: str) -> None:
    """ring.push, some rings full."""
    random = torch.Generator().manual_seed(width)
    rows, aux = torch.randperm(batch + 2, generator=random)[:batch], made(batch, width, dtype=dtype)
    next_ids = integers(0, 1 << 40, batch)
    state = (
        made(batch + 2, 4, width, dtype=dtype),
        integers(0, 1 << 40, batch + 2, 4, seed=1),
        integers(0, 5, batch + 2, seed=2).int(),
    )
    on_device = [tensor.to(device, copy=True) for tensor in state]
    ring.push(rows.to(device), aux.to(device), next_ids.to(device), *on_device)
    ring.push_reference(rows, aux, next_ids, *state)
    assert all(torch.equal(found.cpu(), wanted) for found, wanted in zip(on_device, state, strict=True))


def upcomings(batch: int, width: int, page_size: int, trees: bool, device: str) -> None:
    """upcoming, of chains or trees."""
    pages = integers(0, 1 << 20, batch + 2, 200 // page_size + 64).int()
    lens = integers(0, 130, batch + 2, seed=1).int()
    rows = torch.randperm(batch + 2, generator=torch.Generator().manual_seed(0))[:batch]
    depths = integers(0, width, batch, width, seed=2).int() if trees else None
    loc, expected = torch.zeros(batch, width, dtype=torch.int64, device=device), torch.zeros(batch, width).long()
    wanted = upcoming.upcoming_reference(rows, lens, pages, page_size, depths, expected)
    on_device = None if depths is None else depths.to(device)
    found = upcoming.upcoming(rows.to(device), lens.to(device), pages.to(device), page_size, on_device, loc)
    assert torch.equal(found.cpu(), wanted)
    assert torch.equal(loc.cpu(), expected)

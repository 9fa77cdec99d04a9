"""Our larger kernels one by one at the sweep's shapes: microseconds, and bytes a second where memory bounds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from engine.gpu_check import floor_attention
from engine.gpu_check.device_timer import median_us
from engine.gpu_check.floor import shape_of
from engine.gpu_check.floor_attention import FloorBatch, Work
from engine.gpu_check.session import Session, free_memory
from engine.gpu_check.sizes import torch_dtype
from engine.kernels import advance, argmax, compaction, rms_norm, rope, silu, tree, walk
from engine.kernels.card import is_hopper
from engine.kernels.gated_product import gated_product, gates_together
from engine.models.shapes import LlamaShape

Made = tuple[Work, int]
"""A call, and the bytes that it must move (0: too few to matter)."""
Maker = Callable[[LlamaShape, torch.dtype, str, int], Made]


def run(session: Session) -> None:
    """Cells ``kernels/NAME``: rows (or requests x width) -> {"us", "gb_s"}."""
    sizes = session.sizes
    requests = sizes.clients
    rows = sorted({count * width for count in requests for width in sizes.floor_widths})
    makers: list[tuple[str, Maker, list[int]]] = [
        *((f"product {name}", _product(name), rows) for name in ("qkv", "o", "gate_up", "down", "lm_head")),
        *((name, maker, rows) for name, maker in _BY_ROWS.items()),
        ("gated_product apart", partial(_gated_product, False), [*rows, sizes.prefill_chunk]),
        *((name, maker, list(requests)) for name, maker in _BY_REQUESTS.items()),
    ]
    if session.device == "cuda" and is_hopper(session.torch_device):
        makers.append(("gated_product in one", partial(_gated_product, True), [*rows, sizes.prefill_chunk]))
    shape, dtype = shape_of(sizes.model), torch_dtype(sizes.dtype)
    for name, maker, counts in makers:

        def cell(maker: Maker = maker, counts: list[int] = counts) -> dict[str, Any]:
            return {str(n): _timed(*maker(shape, dtype, session.device, n), session.device) for n in counts}

        session.cell(f"kernels/{name}", cell)
        free_memory(session.device)
    length = sizes.prompt + sizes.output // 2
    for name, make in (("triton", floor_attention.by_triton), ("flashinfer", floor_attention.by_flashinfer)):

        def attention(make: Callable[[FloorBatch], Work] = make) -> dict[str, Any]:
            found = {}
            for count in requests:
                for width in (*sizes.floor_widths, 16):
                    batch = FloorBatch(shape, count, width, length, dtype, session.device)
                    moved = count * length * 2 * shape.num_kv_heads * shape.head_dim * dtype.itemsize
                    found[f"{count}x{width}"] = _timed(make(batch), moved, session.device)
            return found

        if session.device == "cuda":
            session.cell(f"kernels/attention {name}", attention, 40.0)
        free_memory(session.device)


def _timed(work: Work, moved: int, device: str) -> dict[str, float]:
    us = median_us(work, device)
    return {"us": round(us, 2), **({"gb_s": round(moved / us / 1e3, 1)} if moved else {})}


def _product(name: str) -> Maker:
    """A matrix product; all its calls read the same weights, which no cache holds at this size (except small ones)."""

    def make(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
        heads = shape.num_heads * shape.head_dim
        wide = heads + 2 * shape.num_kv_heads * shape.head_dim
        out, inner = {
            "qkv": (wide, shape.hidden_size),
            "o": (shape.hidden_size, heads),
            "gate_up": (2 * shape.intermediate_size, shape.hidden_size),
            "down": (shape.hidden_size, shape.intermediate_size),
            "lm_head": (shape.vocab_size, shape.hidden_size),
        }[name]
        weights = [torch.randn(out, inner, dtype=dtype, device=device) for _ in range(3)]  # in turn: past the cache
        if name == "down":
            weights = [weight.t().contiguous().t() for weight in weights]  # the way round that the engine has it
        x = torch.randn(n, inner, dtype=dtype, device=device)
        turn = iter(range(1 << 30))
        return lambda: F.linear(x, weights[next(turn) % 3]), (out * inner + n * (inner + out)) * dtype.itemsize

    return make


def _add_rms_norm(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    x, residual = (torch.randn(n, shape.hidden_size, dtype=dtype, device=device) for _ in range(2))
    weight = torch.ones(shape.hidden_size, dtype=dtype, device=device)
    return lambda: rms_norm.add_rms_norm(x, residual, weight, 1e-5), 4 * x.nbytes


def _rope_and_write(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    heads, kv_heads, size = shape.num_heads, shape.num_kv_heads, shape.head_dim
    qkv = torch.randn(n, (heads + 2 * kv_heads) * size, dtype=dtype, device=device)
    table = rope.rope_table(size, 512, 10000.0, None, device)
    positions, loc = torch.arange(n, device=device) % 512, torch.arange(n, device=device)
    k, v = (torch.zeros(n, kv_heads, size, dtype=dtype, device=device) for _ in range(2))
    return lambda: rope.rope_and_write(qkv, table, positions, loc, k, v, heads=heads), 2 * qkv.nbytes


def _silu_mul(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    gate_up = torch.randn(n, 2 * shape.intermediate_size, dtype=dtype, device=device)
    return lambda: silu.silu_mul(gate_up, gates_together(shape.intermediate_size)), gate_up.nbytes * 3 // 2


def _gated_product(in_one: bool, shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    dims = (2 * shape.intermediate_size, shape.hidden_size)
    weights = [torch.randn(dims, dtype=dtype, device=device) for _ in range(3)]  # in turn: past the cache
    x, turn = torch.randn(n, shape.hidden_size, dtype=dtype, device=device), iter(range(1 << 30))
    moved = weights[0].nbytes + x.nbytes + n * shape.intermediate_size * dtype.itemsize
    return lambda: gated_product(x, weights[next(turn) % 3], in_one=in_one), moved


def _greedy(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    logits = torch.randn(n, shape.vocab_size, dtype=dtype, device=device)
    return lambda: argmax.greedy(logits), logits.nbytes


def _build_tree(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    """4/2/16: a pool of 4 and 16 candidates."""
    scores = torch.rand(n, 20, device=device)
    scores[:, :4] += 1.0  # parents above their children
    tokens = torch.randint(0, shape.vocab_size, (n, 20), device=device)
    parents = torch.tensor([-1] * 4 + [i // 4 for i in range(16)], dtype=torch.int32, device=device)
    roots, out = torch.zeros(n, dtype=torch.int64, device=device), tree.TreeBuffers.empty(n, 16, device)
    every = parents.expand(n, 20).contiguous()
    return lambda: tree.build_tree(scores, tokens, every, roots, out), 0


def _chain(n: int, device: str) -> tree.TreeBuffers:
    buffers = tree.TreeBuffers.empty(n, 4, device)
    tree.chain_tree(torch.arange(4, device=device).expand(n, 4).contiguous(), buffers)
    return buffers


def _walk(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    chain, out = _chain(n, device), walk.WalkBuffers.empty(n, 4, device)
    drawn = torch.arange(1, 5, device=device).expand(n, 4).contiguous()
    return lambda: walk.walk(chain.tokens, chain.parents, drawn, out), 0


def _compact(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    """A path that skips a node: what lies behind it is moved in every layer."""
    dims = (shape.num_layers, 16 * n, shape.num_kv_heads, shape.head_dim)
    k, v = (torch.zeros(dims, dtype=dtype, device=device) for _ in range(2))
    path = torch.tensor([0, 2, 5], dtype=torch.int32, device=device).expand(n, 3).contiguous()
    kept = torch.full((n,), 3, dtype=torch.int32, device=device)
    loc = torch.arange(16 * n, device=device).view(n, 16)
    moved = 2 * n * 2 * 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * dtype.itemsize
    return lambda: compaction.compact(k, v, path, kept, loc), moved


def _advance(shape: LlamaShape, dtype: torch.dtype, device: str, n: int) -> Made:
    rows, emitted = torch.arange(n, device=device), torch.zeros(n, 4, dtype=torch.int64, device=device)
    kept = torch.ones(n, dtype=torch.int32, device=device)
    tokens, lens = (torch.zeros(n + 1, dtype=of, device=device) for of in (torch.int64, torch.int32))
    return lambda: advance.advance(rows, kept, emitted, tokens, lens, n), 0


_BY_ROWS: dict[str, Maker] = {
    "add_rms_norm": _add_rms_norm,
    "rope_and_write": _rope_and_write,
    "silu_mul": _silu_mul,
    "greedy": _greedy,
}
_BY_REQUESTS: dict[str, Maker] = {
    "build_tree 4/2/16": _build_tree,
    "walk": _walk,
    "compact": _compact,
    "advance": _advance,
}

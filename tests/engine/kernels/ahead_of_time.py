"""Compile the kernels for an H200 on a machine without one: a program of its own, whose kernels are not interpreted.

    python -m tests.engine.kernels.ahead_of_time        prints a line for each compilation

The interpreter runs Python and lets much pass that Triton's compiler refuses: an annotation, a type, a shape. Here the
public functions are called with CPU tensors, every launch is compiled down to machine code, and none is run. A kernel
that no call reaches makes the program fail.
"""

from __future__ import annotations

import os
import sys

os.environ["TRITON_INTERPRET"] = "0"

import importlib
import pkgutil
from typing import Any

import torch
from triton import JITFunction
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

import engine.kernels
from engine.kernels import (
    advance,
    argmax,
    compaction,
    dispatch,
    extend_attention,
    gated_product,
    keyed,
    mask_bits,
    paged_attention,
    pair_norm,
    ring,
    rms_norm,
    rope,
    silu,
    tree,
    upcoming,
    walk,
)


class _NoDevice:
    """What Triton asks its driver before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def kernels() -> set[str]:
    """Names of all that engine.kernels launches: what is jitted and takes memory first. Others are given values."""
    found: set[str] = set()
    for module in pkgutil.iter_modules(engine.kernels.__path__, "engine.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, JITFunction) and value.arg_names and value.arg_names[0].endswith(("_ptr", "_desc")):
                found.add(value.__name__)
    return found


compiled_names: set[str] = set()


def _compile(self: Any, grid: tuple[int, ...]) -> Any:
    """Stands in for ``kernel[grid]``."""

    def launch(*arguments: Any, **options: Any) -> None:
        compiled = self.run(*arguments, grid=grid, warmup=True, **options)
        assert compiled.asm["cubin"]
        compiled_names.add(self.__name__)
        print(self.__name__)

    return launch


def compile_all(dtype: torch.dtype, rows: int) -> None:
    """Every kernel that has a dtype, as Llama-3.1-8B and SmolLM2-135M run it."""
    for hidden, inner in [(4096, 14336), (576, 1536)]:
        x, weight = torch.zeros(rows, hidden, dtype=dtype), torch.zeros(hidden, dtype=dtype)
        rms_norm.rms_norm(x, weight, 1e-5)
        rms_norm.add_rms_norm(x, x.clone(), weight, 1e-5)
        pair_norm.pair_norm(torch.zeros(rows, dtype=torch.int64), x, weight, x.clone(), weight, 1e-5)
        silu.silu_mul(torch.zeros(rows, 2 * inner, dtype=dtype), 64)
        gated_product.gated_product(x, torch.zeros(2 * inner, hidden, dtype=dtype))
        aux, ids = torch.zeros(rows, 3 * hidden, dtype=dtype), torch.zeros(rows, dtype=torch.int64)
        rings = torch.zeros(1, 64, 3 * hidden, dtype=dtype), torch.zeros(1, 64, dtype=torch.int64)
        ring.push(ids, aux, ids, *rings, torch.zeros(1, dtype=torch.int32))
    for heads, kv_heads, head_dim in [(32, 8, 128), (9, 3, 64)]:
        qkv, table = torch.zeros(rows, (heads + 2 * kv_heads) * head_dim, dtype=dtype), torch.zeros(8, head_dim)
        k_pool, v_pool = torch.zeros(2, 1, 8, kv_heads, head_dim, dtype=dtype)
        index = torch.zeros(rows, dtype=torch.int64)
        rope.rope_and_write(qkv, table, index, index, k_pool[0], v_pool[0], heads)
        kv = torch.zeros(rows, 2 * kv_heads * head_dim, dtype=dtype)
        rope.rope_and_write(kv, table, index, index, k_pool[0], v_pool[0], 0)
        path, kept = torch.zeros(2, 4, dtype=torch.int32), torch.ones(2, dtype=torch.int32)
        compaction.compact(k_pool, v_pool, path, kept, torch.zeros(2, 16, dtype=torch.int64))
    for n, vocab in [(1, 128256), (250, 128256), (600, 49152)]:
        argmax.greedy(torch.zeros(1, vocab, dtype=dtype).expand(n, vocab))


def compile_tree_kernels() -> None:
    """What handles tokens, lengths and trees: a chain, the story's tree, the widest."""
    for pool, width in [(20, 16), (264, 64), (3856, 64)]:
        rows = torch.zeros(2, pool), torch.zeros(2, pool, dtype=torch.int64), torch.zeros(2, pool, dtype=torch.int32)
        tree.build_tree(*rows, torch.zeros(2, dtype=torch.int64), tree.TreeBuffers.empty(2, width, "cpu"))
    for width, most in [(4, 4), (16, 3), (64, 17)]:
        tokens = torch.zeros(2, width, dtype=torch.int64)
        tree.chain_tree(tokens, tree.TreeBuffers.empty(2, width, "cpu"))
        for forced in (None, torch.ones(2, dtype=torch.int32)):
            walk.walk(tokens, tokens.int(), tokens, walk.WalkBuffers.empty(2, most, "cpu"), forced)
    masks, lengths = torch.zeros(2, 16, dtype=torch.int64), torch.ones(2, dtype=torch.int32)
    mask_bits.pack_masks(masks, lengths, torch.zeros(3, dtype=torch.int32), 64, torch.zeros(64, dtype=torch.uint8))
    ints = torch.zeros(5, dtype=torch.int64)
    advance.advance(ints, ints.int(), torch.zeros(5, 3, dtype=torch.int64), ints.clone(), ints.int(), 7)
    keyed.keyed_uniform(ints, ints)
    for width, depths in [(1, None), (16, torch.zeros(5, 16, dtype=torch.int32))]:
        loc = torch.zeros(5, width, dtype=torch.int64)
        upcoming.upcoming(ints, ints.int(), torch.zeros(1, 9, dtype=torch.int32), 64, depths, loc)


def compile_attention(dtype: torch.dtype) -> None:
    """Decode of one and of many requests, a tree, chunks with each tile: as Llama-3.1-8B and SmolLM2-135M run them."""
    for heads, kv_heads, head_dim in [(32, 8, 128), (9, 3, 64)]:
        k, v = torch.zeros(2, 64, kv_heads, head_dim, dtype=dtype)
        for batch, width in [(1, 1), (250, 1), (2, 16)]:
            rows = torch.zeros(batch, dtype=torch.int64)
            paged_attention.paged_attention(
                torch.zeros(batch * width, heads, head_dim, dtype=dtype),
                k,
                v,
                rows=rows,
                width=width,
                pages=torch.zeros(1, 64, dtype=torch.int32),
                lens=torch.zeros(1, dtype=torch.int32),
                page_size=64,
                tail_loc=torch.zeros(batch, width, dtype=torch.int64),
                tail_mask=None if width == 1 else torch.zeros(batch, width, dtype=torch.int64),
                bound=4096,
            )
        for chunk in (16, 128, 512):
            extend_attention.extend_attention(
                torch.zeros(chunk, heads, head_dim, dtype=dtype),
                k,
                v,
                rows=torch.zeros(1, dtype=torch.int64),
                starts=torch.zeros(1, dtype=torch.int32),
                cu_q=torch.zeros(2, dtype=torch.int32),
                max_q=chunk,
                pages=torch.zeros(1, 64, dtype=torch.int32),
                page_size=64,
                host_lengths=[chunk],
                host_q=[chunk],
            )


if __name__ == "__main__":
    driver.set_active(_NoDevice())
    JITFunction.__getitem__ = _compile
    dispatch._Switch.interpreting = True  # so that CPU tensors take the kernels
    compile_all(torch.bfloat16, rows=2)
    compile_all(torch.bfloat16, rows=1024)
    compile_all(torch.float32, rows=2)
    compile_tree_kernels()
    compile_attention(torch.bfloat16)
    compile_attention(torch.float32)
    if missing := kernels() - compiled_names:
        sys.exit(f"no call here reaches {', '.join(sorted(missing))}")

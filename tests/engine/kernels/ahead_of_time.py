"""Compile the kernels for an H200 on a machine without one: a program of its own, whose kernels are not interpreted.

    python -m tests.engine.kernels.ahead_of_time        prints a line for each kernel compiled

The interpreter runs Python and lets much pass that Triton's compiler refuses: an annotation, a type, a shape. Here the
public functions are called with CPU tensors, every launch is compiled down to machine code, and none is run.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

from typing import Any

import torch
from triton import JITFunction
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from engine.kernels import advance, argmax, compaction, dispatch, keyed, pair_norm, rms_norm, rope, silu, tree, walk


class _NoDevice:
    """What Triton asks its driver before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _compile(self: Any, grid: tuple[int, ...]) -> Any:
    """Stands in for ``kernel[grid]``."""

    def launch(*arguments: Any, **options: Any) -> None:
        compiled = self.run(*arguments, grid=grid, warmup=True, **options)
        assert compiled.asm["cubin"]
        print(self.__name__)

    return launch


def compile_all(dtype: torch.dtype) -> None:
    """Every kernel that has a dtype, as Llama-3.1-8B and SmolLM2-135M run it."""
    for hidden, inner in [(4096, 14336), (576, 1536)]:
        x, weight = torch.zeros(2, hidden, dtype=dtype), torch.zeros(hidden, dtype=dtype)
        rms_norm.rms_norm(x, weight, 1e-5)
        rms_norm.add_rms_norm(x, x.clone(), weight, 1e-5)
        pair_norm.pair_norm(torch.zeros(2, dtype=torch.int64), x, weight, x.clone(), weight, 1e-5)
        silu.silu_mul(torch.zeros(2, 2 * inner, dtype=dtype))
    for heads, kv_heads, head_dim in [(32, 8, 128), (9, 3, 64)]:
        qkv, table = torch.zeros(2, (heads + 2 * kv_heads) * head_dim, dtype=dtype), torch.zeros(8, head_dim)
        k_pool, v_pool = torch.zeros(2, 1, 8, kv_heads, head_dim, dtype=dtype)
        index = torch.zeros(2, dtype=torch.int64)
        rope.rope_and_write(qkv, table, index, index, k_pool[0], v_pool[0], heads)
        kv = torch.zeros(2, 2 * kv_heads * head_dim, dtype=dtype)
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
    ints = torch.zeros(5, dtype=torch.int64)
    advance.advance(ints, ints.int(), torch.zeros(5, 3, dtype=torch.int64), ints.clone(), ints.int(), 7)
    keyed.keyed_uniform(ints, ints)


if __name__ == "__main__":
    driver.set_active(_NoDevice())
    JITFunction.__getitem__ = _compile
    dispatch._Switch.interpreting = True  # so that CPU tensors take the kernels
    compile_all(torch.bfloat16)
    compile_all(torch.float32)
    compile_tree_kernels()

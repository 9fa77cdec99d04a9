"""The kernels, compiled, beside their torch references; small and large, and captured in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from engine.kernels import advance, argmax, compaction, gated_product, keyed, rms_norm, rope, silu, tree, walk
from engine.kernels.card import is_hopper
from tests.engine.kernels import comparisons

GPU = "cuda"
DTYPES = pytest.mark.parametrize("dtype", comparisons.DTYPES)

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA GPU", allow_module_level=True)


@DTYPES
@pytest.mark.parametrize(("n", "hidden"), [(1, 4096), (3, 576), (2, 1), (7, 100), (0, 64), (1000, 4096), (33, 14336)])
def test_rms_norm(n: int, hidden: int, dtype: torch.dtype) -> None:
    comparisons.rms_norms(n, hidden, dtype, GPU)


@DTYPES
@pytest.mark.parametrize(("n", "hidden"), [(1, 4096), (3, 576), (2, 1), (7, 100), (0, 64), (1000, 4096), (33, 14336)])
def test_add_rms_norm(n: int, hidden: int, dtype: torch.dtype) -> None:
    comparisons.add_rms_norms(n, hidden, dtype, GPU)


@DTYPES
@pytest.mark.parametrize(
    ("n", "inner", "together"),
    [(1, 14336, 64), (3, 1536, 64), (2, 100, 100), (4, 1, 1), (2, 2049, 2049), (1000, 14336, 64)],
)
def test_silu_mul(n: int, inner: int, together: int, dtype: torch.dtype) -> None:
    comparisons.silu_muls(n, inner, together, dtype, GPU)


HOPPER = pytest.mark.skipif(not is_hopper(torch.device(GPU)), reason="a GPU of another kind takes two launches")


@HOPPER
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("n", "hidden", "inner"), [(1, 64, 128), (130, 576, 1536), (1000, 4096, 14336), (8192, 576, 1536)]
)
def test_gated_product(n: int, hidden: int, inner: int, dtype: torch.dtype) -> None:
    comparisons.gated_products(n, hidden, inner, dtype, GPU, in_one=True)


@pytest.mark.parametrize(("n", "hidden", "inner"), [(768, 4096, 14336), (1000, 200, 96)])
def test_gated_product_as_two_launches(n: int, hidden: int, inner: int) -> None:
    comparisons.gated_products(n, hidden, inner, torch.bfloat16, GPU)


@HOPPER
def test_gated_product_can_be_captured() -> None:
    """Replayed over other rows in the same place, and over their rest of a tile that is not full."""
    x, gate_up = (torch.randn(rows, 576, device=GPU).bfloat16() / 24 for rows in (1000, 3072))
    kept_back: dict[str, torch.Tensor] = {}

    def work() -> None:
        kept_back["out"] = gated_product.gated_product(x, gate_up, in_one=True)

    replayed(work, first=lambda: x.copy_(x.flip(0)))
    expected = gated_product.gated_product_reference(x, gate_up)
    torch.testing.assert_close(kept_back["out"], expected, rtol=4 * 2**-7, atol=4 * 2**-7)


@DTYPES
@pytest.mark.parametrize(("batch", "width"), [(1, 12288), (3, 1728), (250, 12288), (2, 5)])
def test_push(batch: int, width: int, dtype: torch.dtype) -> None:
    comparisons.pushes(batch, width, dtype, GPU)


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize(
    ("batch", "width", "page_size"), [(1, 1, 64), (250, 1, 64), (250, 4, 64), (3, 64, 16), (2, 5, 3)]
)
def test_upcoming(batch: int, width: int, page_size: int, trees: bool) -> None:
    comparisons.upcomings(batch, width, page_size, trees, GPU)


@DTYPES
@pytest.mark.parametrize(
    ("n", "heads", "kv_heads", "head_dim"),
    [
        (1, 32, 8, 128),
        (3, 9, 3, 64),
        (2, 4, 2, 80),
        (5, 1, 1, 2),
        (2, 40, 1, 16),
        (1, 2, 2, 256),
        (2, 0, 8, 128),
        (1000, 32, 8, 128),
        (4001, 9, 3, 64),
    ],
)
def test_rope_and_write(n: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
    comparisons.ropes(n, heads, kv_heads, head_dim, dtype, GPU)


@DTYPES
@pytest.mark.parametrize(
    ("n", "vocab"), [(1, 128256), (2, 50257), (3, 5), (1, 1), (16, 49152), (250, 128256), (1000, 32000)]
)
def test_greedy(n: int, vocab: int, dtype: torch.dtype) -> None:
    comparisons.greedys(n, vocab, dtype, GPU)


def test_greedy_of_nan_ends() -> None:
    logits = torch.full((3, 128256), float("nan"), device=GPU)
    logits[1, 70000] = 1.0
    first, second, third = argmax.greedy(logits).tolist()
    assert 0 <= first < 128256
    assert second == 70000
    assert 0 <= third < 128256


@pytest.mark.parametrize("n", [1, 127, 5000])
def test_keyed_uniform(n: int) -> None:
    comparisons.keyed_draws(n, GPU)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize(
    ("batch", "pool", "width"),
    [(3, 20, 16), (1, 1, 2), (2, 3, 2), (2, 15, 16), (250, 20, 16), (250, 70, 64), (64, 264, 64), (16, 3856, 64)],
)
def test_build_tree(batch: int, pool: int, width: int, ties: bool) -> None:
    comparisons.built_trees(batch, pool, width, GPU, ties)


@pytest.mark.parametrize(("batch", "width"), [(1, 1), (3, 2), (250, 4), (250, 63), (7, 64)])
def test_chain_tree(batch: int, width: int) -> None:
    comparisons.chain_trees(batch, width, GPU)


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(
    ("batch", "width", "most"), [(3, 1, 1), (250, 4, 4), (250, 16, 5), (9, 16, 1), (250, 64, 17), (1, 5, 3)]
)
def test_walk(batch: int, width: int, most: int, forced: bool) -> None:
    comparisons.walks(batch, width, most, GPU, forced)


@DTYPES
@pytest.mark.parametrize(
    ("batch", "width", "most", "layers", "kv_heads", "head_dim"),
    [(3, 16, 5, 2, 3, 64), (2, 64, 17, 1, 1, 16), (2, 4, 1, 1, 1, 16), (1, 8, 4, 1, 9, 256), (250, 16, 5, 4, 8, 128)],
)
def test_compact(
    batch: int, width: int, most: int, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    comparisons.compactions(batch, width, most, layers, kv_heads, head_dim, dtype, GPU)


@pytest.mark.parametrize(("batch", "emitted"), [(1, 1), (4, 3), (130, 5), (1000, 17)])
def test_advance(batch: int, emitted: int) -> None:
    comparisons.advances(batch, emitted, GPU)


def test_a_pool_beyond_two_to_the_31_elements_is_reached() -> None:
    """Offsets into a pool are 64 bits wide: 8 layers of 300,000 slots of 8 × 128 are 2.4e9 elements."""
    if torch.cuda.mem_get_info()[0] < 12 * 2**30:
        pytest.skip("needs 12 GiB")
    layers, slots, kv_heads, head_dim = 8, 300_000, 8, 128
    k_pool = torch.zeros(layers, slots, kv_heads, head_dim, dtype=torch.bfloat16, device=GPU)
    v_pool = torch.zeros_like(k_pool)
    loc = torch.tensor([slots - 3, slots - 2, slots - 1], device=GPU)
    qkv = torch.ones(3, (2 + 2 * kv_heads) * head_dim, dtype=torch.bfloat16, device=GPU)
    table = rope.rope_table(head_dim, 4, 1e4, None, GPU)
    rope.rope_and_write(qkv, table, torch.zeros_like(loc), loc, k_pool[-1], v_pool[-1], 2)
    assert bool((k_pool[-1, -3:] == 1).all())
    k_pool[-1, -1] = 2
    path, kept = (torch.tensor(value, dtype=torch.int32, device=GPU) for value in ([[0, 2]], [2]))
    compaction.compact(k_pool, v_pool, path, kept, loc[None])
    assert bool((k_pool[-1, -2] == 2).all())
    assert int(k_pool[0].count_nonzero()) == 0


def replayed(work: Callable[[], object], first: Callable[[], object] = lambda: None) -> None:
    """Run `work` once, so that it is compiled, capture it, do what comes ``first``, and replay the capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    first()
    graph.replay()
    torch.cuda.synchronize()


def test_all_kernels_can_be_captured() -> None:
    """A layer's kernels, then those of a verify step; what they give is read after the replay."""
    dtype, n, hidden, heads, kv_heads, head_dim = torch.bfloat16, 8, 256, 4, 2, 64
    x, residual, weight = (torch.randn(*s, device=GPU).to(dtype) for s in [(n, hidden), (n, hidden), (hidden,)])
    qkv = torch.randn(n, (heads + 2 * kv_heads) * head_dim, device=GPU).to(dtype)
    pools = torch.randn(2, 3, 64, kv_heads, head_dim, device=GPU).to(dtype)
    table, positions = rope.rope_table(head_dim, 64, 1e4, None, GPU), torch.arange(n, device=GPU)
    logits = torch.randn(n, 1000, device=GPU).to(dtype)
    scores, tokens, parents, roots = (t.to(GPU) for t in comparisons.random_pool(2, 20))
    trees, walks = tree.TreeBuffers.empty(2, 4, GPU), walk.WalkBuffers.empty(2, 3, GPU)
    state = torch.zeros(3, dtype=torch.int64, device=GPU), torch.zeros(3, dtype=torch.int32, device=GPU)
    rows = torch.tensor([0, 2], device=GPU)
    kept_back: dict[str, torch.Tensor] = {}

    def work() -> None:
        normed = rms_norm.rms_norm(x, weight, 1e-5)
        kept_back["normed"] = rms_norm.add_rms_norm(normed, residual, weight, 1e-5)
        kept_back["q"] = rope.rope_and_write(qkv, table, positions, positions, pools[0, 0], pools[1, 0], heads)
        kept_back["gated"] = silu.silu_mul(kept_back["normed"], 128)
        kept_back["chosen"] = argmax.greedy(logits)
        kept_back["draws"] = keyed.keyed_uniform(roots, rows)
        tree.build_tree(scores, tokens, parents, roots, trees)
        walk.walk(trees.tokens, trees.parents, kept_back["chosen"].view(2, 4), walks)
        compaction.compact(pools[0], pools[1], walks.path, walks.kept, positions.view(2, 4))
        advance.advance(rows, walks.kept, walks.emitted, *state, pad_row=2)

    replayed(work)
    assert torch.equal(kept_back["gated"], silu.silu_mul(kept_back["normed"], 128))
    assert torch.equal(kept_back["chosen"].cpu(), logits.cpu().argmax(dim=-1))
    assert torch.equal(kept_back["draws"], keyed.keyed_uniform_reference(roots, rows))
    expected = tree.TreeBuffers.empty(2, 4, "cpu")
    tree.build_tree(scores.cpu(), tokens.cpu(), parents.cpu(), roots.cpu(), expected)
    comparisons.assert_same_buffers(trees, expected)
    assert int(state[1][0]) == 2 * int(walks.kept[0])  # once by itself, once by the replay
    assert int(state[1][2]) == 0  # the pad row

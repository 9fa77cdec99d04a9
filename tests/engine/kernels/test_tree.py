"""Verify trees on the device."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.tree import TreeBuffers, build_tree, chain_tree
from engine.spec.draft_tree import DraftTrees, chain, select_best
from tests.engine.kernels import comparisons

SHAPES = [(3, 20, 16), (1, 1, 2), (2, 3, 2), (2, 15, 16), (2, 70, 64), (2, 264, 64), (1, 33, 5)]


def as_drawn(buffers: TreeBuffers) -> DraftTrees:
    return DraftTrees(buffers.tokens, buffers.parents.long())


def sees(masks: torch.Tensor) -> torch.Tensor:
    """bool [B, W, W] from the bits."""
    return (masks[:, :, None] >> torch.arange(masks.shape[1]) & 1).bool()


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize(("batch", "pool", "width"), SHAPES)
def test_the_reference_builds_what_the_host_worker_does(batch: int, pool: int, width: int, ties: bool) -> None:
    scores, tokens, parents, roots = comparisons.random_pool(batch, pool, ties)
    out = TreeBuffers.empty(batch, width, "cpu")
    build_tree(scores, tokens, parents, roots, out)
    expected = select_best(scores, tokens, parents.long(), roots, width)
    assert torch.equal(out.tokens, expected.tokens)
    assert torch.equal(out.parents.long(), expected.parents)
    assert torch.equal(out.depths.long(), expected.depths())
    assert torch.equal(sees(out.masks), expected.visibility())


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize(("batch", "pool", "width"), SHAPES)
def test_the_kernel_equals_the_reference(interpreted: None, batch: int, pool: int, width: int, ties: bool) -> None:
    comparisons.built_trees(batch, pool, width, "cpu", ties)


def test_zeros_of_either_sign_tie(interpreted: None) -> None:
    """log(1) comes as either, and then the earlier candidate is first, as in a sort."""
    out = TreeBuffers.empty(1, 2, "cpu")
    tokens, parents = torch.tensor([[7, 8]]), torch.tensor([[-1, -1]], dtype=torch.int32)
    build_tree(torch.tensor([[-0.0, 0.0]]), tokens, parents, torch.tensor([1]), out)
    assert out.tokens.tolist() == [[1, 7]]


def test_a_pool_of_nothing_but_minus_infinity_is_taken_in_its_order(interpreted: None) -> None:
    out = TreeBuffers.empty(1, 4, "cpu")
    scores, tokens = torch.full((1, 6), float("-inf")), torch.arange(6)[None]
    build_tree(scores, tokens, torch.arange(-1, 5, dtype=torch.int32)[None], torch.tensor([9]), out)
    assert out.tokens.tolist() == [[9, 0, 1, 2]]
    assert out.parents.tolist() == [[-1, 0, 1, 2]]


def test_a_tree_of_one_node_is_its_root(interpreted: None) -> None:
    out = TreeBuffers.empty(2, 1, "cpu")
    build_tree(*comparisons.random_pool(2, 4)[:3], torch.tensor([5, 6]), out)
    assert out.tokens.tolist() == [[5], [6]]
    assert out.parents.tolist() == [[-1], [-1]]
    assert out.masks.tolist() == [[1], [1]]


def test_nan_scores_end_in_a_tree(interpreted: None) -> None:
    """No matter which, but with parents before children: a walk over it comes to an end."""
    scores, tokens, parents, roots = comparisons.random_pool(1, 20)
    scores[0, ::3] = float("nan")
    out = TreeBuffers.empty(1, 8, "cpu")
    build_tree(scores, tokens, parents, roots, out)
    assert (out.parents < torch.arange(8)).all()


@pytest.mark.parametrize("width", [1, 2, 5, 63, 64])
def test_a_chain_is_the_host_workers(width: int) -> None:
    tokens = comparisons.integers(0, 1000, 3, width)
    out = TreeBuffers.empty(3, width, "cpu")
    chain_tree(tokens, out)
    expected = chain(tokens)
    assert torch.equal(as_drawn(out).tokens, expected.tokens)
    assert torch.equal(out.parents.long(), expected.parents)
    assert torch.equal(out.depths.long(), expected.depths())
    assert torch.equal(sees(out.masks), expected.visibility())


@pytest.mark.parametrize("width", [1, 2, 5, 63, 64])
def test_the_chain_kernel_equals_its_reference(interpreted: None, width: int) -> None:
    comparisons.chain_trees(3, width, "cpu")


def test_a_tree_wider_than_its_masks_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 64"):
        chain_tree(torch.zeros(1, 65, dtype=torch.int64), TreeBuffers.empty(1, 65, "cpu"))


def test_a_pool_smaller_than_the_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 8 candidates, the pool holds 4"):
        build_tree(*comparisons.random_pool(1, 4), TreeBuffers.empty(1, 9, "cpu"))


def test_buffers_with_gaps_are_refused() -> None:
    wide = TreeBuffers.empty(2, 8, "cpu")
    cut = TreeBuffers(wide.tokens[:, :4], wide.parents[:, :4], wide.depths[:, :4], wide.masks[:, :4])
    with pytest.raises(ValueError, match="tokens must be contiguous"):
        chain_tree(torch.zeros(2, 4, dtype=torch.int64), cut)

"""The walk on the device."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.walk import WalkBuffers, walk
from engine.spec.draft_tree import DraftTrees
from engine.spec.verify import walk_trees
from tests.engine.kernels import comparisons


def assert_walks_as_the_host(batch: int, width: int, forced: list[int] | None) -> None:
    tokens, parents, drawn = comparisons.random_trees(batch, width)
    expected = walk_trees(
        DraftTrees(tokens, parents.long()), lambda at, requests, _: drawn[torch.tensor(requests), at], forced
    )
    out = WalkBuffers.empty(batch, width, "cpu")
    walk(tokens, parents, drawn, out, None if forced is None else torch.tensor(forced, dtype=torch.int32))
    for row, host in enumerate(expected):
        kept = int(out.kept[row])
        assert out.path[row].tolist() == host.nodes + host.nodes[-1:] * (width - kept)
        assert out.emitted[row].tolist() == host.tokens + [-1] * (width - kept)


@pytest.mark.parametrize("width", [1, 2, 4, 16, 64])
def test_the_reference_walks_as_the_host_worker_does(width: int) -> None:
    assert_walks_as_the_host(20, width, None)


@pytest.mark.parametrize("width", [1, 2, 16])
def test_the_reference_is_forced_as_the_host_worker_is(width: int) -> None:
    assert_walks_as_the_host(6, width, [1, 2, 3, 4, 5, 100])


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(("width", "most"), [(1, 1), (4, 4), (16, 5), (16, 1), (64, 17), (5, 3)])
def test_the_kernel_equals_the_reference(interpreted: None, width: int, most: int, forced: bool) -> None:
    comparisons.walks(5, width, most, "cpu", forced)


def test_the_first_of_two_children_with_a_token_is_taken(interpreted: None) -> None:
    out = WalkBuffers.empty(1, 2, "cpu")
    parents = torch.tensor([[-1, 0, 0]], dtype=torch.int32)
    walk(torch.tensor([[9, 7, 7]]), parents, torch.tensor([[7, 1, 2]]), out)
    assert out.path.tolist() == [[0, 1]]
    assert out.emitted.tolist() == [[7, 1]]


def test_a_walk_stops_at_the_most_nodes(interpreted: None) -> None:
    """The last kept node still emits what was drawn there, although a child carries it."""
    out = WalkBuffers.empty(1, 2, "cpu")
    parents = torch.tensor([[-1, 0, 1]], dtype=torch.int32)
    walk(torch.tensor([[9, 7, 8]]), parents, torch.tensor([[7, 8, 5]]), out)
    assert out.kept.tolist() == [2]
    assert out.emitted.tolist() == [[7, 8]]


def test_a_forced_walk_keeps_the_root_at_least(interpreted: None) -> None:
    out = WalkBuffers.empty(1, 2, "cpu")
    parents = torch.tensor([[-1, 0]], dtype=torch.int32)
    walk(torch.tensor([[9, 7]]), parents, torch.tensor([[7, 1]]), out, torch.tensor([0], dtype=torch.int32))
    assert out.kept.tolist() == [1]
    assert out.emitted.tolist() == [[7, -1]]

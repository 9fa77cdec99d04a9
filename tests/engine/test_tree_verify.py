"""The target over a tree: every node's logits equal those of its path run alone."""

from __future__ import annotations

import pytest
import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.kv.request_slots import RequestSlots
from engine.models.linear import choose_arithmetic
from engine.models.llama import ForwardBatch, LlamaModel
from engine.spec.draft_tree import DraftTrees, select_best
from tests.engine.tiny import tiny_target


def model() -> LlamaModel:
    target = tiny_target()
    return LlamaModel(target.shape, target.tensors, choose_arithmetic("float64"), 256)


def full_tree(topk: int, depth: int) -> DraftTrees:
    """All nodes of a tree, tokens all different."""
    tokens, parents, frontier = [5], [-1], [0]
    for _ in range(depth):
        grown = []
        for parent in frontier:
            for _ in range(topk):
                grown.append(len(tokens))
                tokens.append(10 + len(tokens))
                parents.append(parent)
        frontier = grown[: topk * 2]
    return DraftTrees(torch.tensor([tokens]), torch.tensor([parents]))


@pytest.mark.parametrize(("topk", "depth"), [(2, 3), (4, 3), (1, 5)])
@pytest.mark.parametrize("pages", [[0, 1, 2, 3], [6, 1, 4, 2]], ids=["contiguous", "scattered"])
def test_each_root_to_leaf_path_alone_gives_the_trees_logits(topk: int, depth: int, pages: list[int]) -> None:
    """B36: positions follow the chosen parent, the mask lets a node see its ancestors and nothing else."""
    llama, prompt = model(), list(range(40, 60))
    pool = llama.make_pool(8 * 32)
    slots = RequestSlots(32, pages)
    heads = llama.shape.num_heads

    def forward(ids: list[int], start: int, positions: torch.Tensor, tree: torch.Tensor | None) -> torch.Tensor:
        segment = Segment(slots, start, len(ids), tree)
        batch = ForwardBatch(
            torch.tensor(ids),
            positions,
            slots.slots(start, start + len(ids)),
            AttentionPlan([segment], pool, heads),
            None,
            False,
        )
        return llama.forward(batch, pool).logits

    forward(prompt, 0, torch.arange(20), None)
    trees = full_tree(topk, depth)
    tokens, parents = trees.tokens[0].tolist(), trees.parents[0].tolist()
    got = forward(tokens, 20, 20 + trees.depths()[0], trees.visibility()[0])
    leaves = set(range(len(tokens))) - set(parents)
    for leaf in leaves:
        path = [leaf]
        while parents[path[0]] >= 0:
            path.insert(0, parents[path[0]])
        alone = forward([tokens[n] for n in path], 20, torch.arange(20, 20 + len(path)), None)
        torch.testing.assert_close(got[torch.tensor(path)], alone, rtol=1e-9, atol=1e-9)


def test_many_requests_in_one_strided_batch_equal_each_alone() -> None:
    """B35: equally spaced, unequally long, some scattered: attention never mixes requests."""
    llama = model()
    pool = llama.make_pool(16 * 64)
    places = [RequestSlots(64, [p]) for p in (0, 1, 2, 3, 5, 7)] + [RequestSlots(64, [9, 12])]
    lengths = [3, 40, 17, 63, 9, 33, 70]
    alone = []
    for slots, length in zip(places, lengths, strict=True):
        ids = torch.arange(length) + 30
        segment = Segment(slots, 0, length)
        batch = ForwardBatch(
            ids, torch.arange(length), slots.slots(0, length), AttentionPlan([segment], pool, 4), None, False
        )
        alone.append(llama.forward(batch, pool).logits[-1])
    segments = [Segment(slots, length - 1, 1) for slots, length in zip(places, lengths, strict=True)]
    starts = torch.tensor([length - 1 for length in lengths])
    loc = torch.cat([slots.slots(length - 1, length) for slots, length in zip(places, lengths, strict=True)])
    plan = AttentionPlan(segments, pool, 4)
    assert len(plan.groups) < len(segments)
    together = llama.forward(ForwardBatch(starts + 30, starts, loc, plan, None, False), pool).logits
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-9, atol=1e-9)


def test_the_best_candidates_become_the_tree_and_parents_come_first() -> None:
    scores = torch.tensor([[-0.1, -2.0, -0.1, -0.5, -3.0, -4.0]])
    tokens = torch.tensor([[11, 12, 13, 14, 15, 16]])
    parents = torch.tensor([[-1, -1, 0, 0, 1, 1]])
    trees = select_best(scores, tokens, parents, torch.tensor([7]), 4)
    assert trees.tokens.tolist() == [[7, 11, 13, 14]]
    assert trees.parents.tolist() == [[-1, 0, 1, 1]]
    assert trees.depths().tolist() == [[0, 1, 2, 2]]
    assert trees.visibility()[0, 2].tolist() == [True, True, True, False]

"""The lossless walk: its law against the target's distribution, and its small print."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from engine.sampler import draw, probabilities
from engine.sampling_params import SamplingParams
from engine.spec.draft_tree import DraftTrees, chain
from engine.spec.verify import Walk, walk_trees

N = 40_000
VOCAB = 7


def target_logits() -> torch.Tensor:
    """[VOCAB + 1, VOCAB]: the next token's logits after each token (the last row: after the root)."""
    return torch.randn(VOCAB + 1, VOCAB, generator=torch.Generator().manual_seed(3)).double() * 1.5


def p_value(counts: torch.Tensor, expected: torch.Tensor) -> float:
    """Pearson's chi-squared test; cells expected under 5 times are merged. Its tail is an incomplete gamma function."""
    small = expected < 5
    observed = torch.cat([counts[~small], counts[small].sum()[None]])
    wanted = torch.cat([expected[~small], expected[small].sum()[None]])
    keep = wanted > 0
    assert (observed[~keep] == 0).all(), "something impossible was drawn"
    statistic = ((observed[keep] - wanted[keep]) ** 2 / wanted[keep]).sum()
    freedom = int(keep.sum()) - 1
    return float(torch.special.gammaincc(torch.tensor(freedom / 2).double(), statistic / 2))


TREE = ([-1, 2, 5, 0, 4, 1, 6, 3], [-1, 0, 0, 0, 1, 1, 2, 5])
CHAIN = ([-1, 2, 4, 1], [-1, 0, 1, 2])


def first_three(
    shape: tuple[list[int], list[int]], params: SamplingParams, biased: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Joint counts of the first two tokens of N requests, one seed each, and what the target's law expects.

    A walk that emits one token is continued by a plain draw at the next position, as the engine does.
    """
    logits = target_logits()
    tokens, parents = (torch.tensor(part).expand(N, -1).contiguous() for part in shape)
    after = [VOCAB] + shape[0][1:]  # the row of `logits` that holds at each node

    def draw_after(rows: list[int], seeds: list[int], position: int) -> torch.Tensor:
        return draw(logits[torch.tensor(rows)], [params] * len(rows), seeds, [position] * len(rows))

    def draw_at(nodes: torch.Tensor, alive: list[int], depth: int) -> torch.Tensor:
        drawn = draw_after([after[node] for node in nodes.tolist()], alive, 100 + depth)
        if biased and depth == 0:  # accepts the first draft a little too often
            lucky = torch.rand(len(alive), generator=torch.Generator().manual_seed(1)) < 0.03
            drawn = torch.where(lucky, torch.tensor(shape[0][1]), drawn)
        return drawn

    walks = walk_trees(DraftTrees(tokens, parents), draw_at)
    pairs = []
    short = [i for i, walk in enumerate(walks) if len(walk.tokens) == 1]
    second = dict(zip(short, draw_after([walks[i].tokens[0] for i in short], short, 101).tolist(), strict=True))
    for i, walk in enumerate(walks):
        pairs.append(walk.tokens[0] * VOCAB + (walk.tokens[1] if len(walk.tokens) > 1 else second[i]))
    counts = torch.bincount(torch.tensor(pairs), minlength=VOCAB * VOCAB).double()
    probs = probabilities(logits, [params] * (VOCAB + 1))
    expected = (probs[VOCAB][:, None] * probs[:VOCAB]).reshape(-1) * N
    return counts, expected


@pytest.mark.parametrize("shape", [TREE, CHAIN], ids=["tree", "chain"])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.7, top_k=4),
        SamplingParams(temperature=1.3, top_p=0.8),
        SamplingParams(temperature=1.0, min_p=0.1, top_p=0.95),
    ],
    ids=["temperature", "top_k", "top_p", "min_p"],
)
def test_emitted_tokens_follow_the_targets_own_distribution(
    shape: tuple[list[int], list[int]], params: SamplingParams
) -> None:
    assert p_value(*first_three(shape, params)) > 1e-3


@pytest.mark.parametrize("shape", [TREE, CHAIN], ids=["tree", "chain"])
def test_the_test_finds_a_biased_acceptor(shape: tuple[list[int], list[int]]) -> None:
    assert p_value(*first_three(shape, SamplingParams(temperature=1.0), biased=True)) < 1e-3


def follow(script: list[int]) -> Callable[[torch.Tensor, list[int], int], torch.Tensor]:
    return lambda nodes, alive, depth: torch.full((len(alive),), script[depth])


def test_the_walk_follows_equal_children_and_ends_with_the_bonus_token() -> None:
    tree = DraftTrees(torch.tensor([[9, 1, 2, 3, 4]]), torch.tensor([[-1, 0, 0, 2, 3]]))
    assert walk_trees(tree, follow([2, 3, 4, 8])) == [Walk([0, 2, 3, 4], [2, 3, 4, 8])]
    assert walk_trees(tree, follow([1, 3])) == [Walk([0, 1], [1, 3])]
    assert walk_trees(tree, follow([7])) == [Walk([0], [7])]


def test_forced_walks_follow_first_children_whatever_is_drawn() -> None:
    """Simulated acceptance: exactly so many nodes as prescribed, or as there are on the way down."""
    tree = DraftTrees(torch.tensor([[9, 1, 2, 3, 4]]), torch.tensor([[-1, 0, 0, 1, 3]]))

    def forced(kept: int, script: list[int]) -> Walk:
        return walk_trees(tree, follow(script), [kept])[0]

    assert forced(1, [1]) == Walk([0], [1]), "a right draft is not kept either"
    assert forced(2, [2, 8]) == Walk([0, 1], [1, 8])
    assert forced(4, [7, 7, 7, 8]) == Walk([0, 1, 3, 4], [1, 3, 4, 8])
    assert forced(9, [7, 7, 7, 8]) == Walk([0, 1, 3, 4], [1, 3, 4, 8]), "the tree is not deeper"


def test_requests_of_one_step_stop_at_their_own_depth() -> None:
    trees = chain(torch.tensor([[9, 1, 2], [9, 1, 5], [9, 7, 2]]))
    walks = walk_trees(trees, follow([1, 2, 3]))
    assert [walk.tokens for walk in walks] == [[1, 2, 3], [1, 2], [1]]
    assert [walk.correct_drafts for walk in walks] == [2, 1, 0]


def test_a_draft_outside_the_filters_is_never_emitted() -> None:
    """B17: top_k=2 with a draft that proposes tokens outside it."""
    logits = target_logits()
    params = SamplingParams(temperature=1.0, top_k=2)
    allowed = set(logits[VOCAB].topk(2).indices.tolist())
    outside = [token for token in range(VOCAB) if token not in allowed]
    trees = DraftTrees(
        torch.tensor([[-1, *outside]]).expand(2000, -1), torch.tensor([[-1] + [0] * len(outside)]).expand(2000, -1)
    )

    def draw_at(nodes: torch.Tensor, alive: list[int], depth: int) -> torch.Tensor:
        return draw(logits[VOCAB].expand(len(alive), -1), [params] * len(alive), alive, [0] * len(alive))

    walks = walk_trees(trees, draw_at)
    assert {walk.tokens[0] for walk in walks} == allowed
    assert all(len(walk.tokens) == 1 for walk in walks)

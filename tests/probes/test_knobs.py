"""Knob values and the rules between them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from probes.knobs import KNOBS, KnobError, Knobs, apply_changes, check_shape, largest_tree


def pool_size(steps: int, topk: int) -> int:
    """Candidates counted by growing the tree: every level keeps topk nodes, and each brings topk children."""
    total, frontier = 1, 1
    for _ in range(steps):
        children = frontier * topk
        total += children
        frontier = min(children, topk)
    return total


@pytest.mark.parametrize(("steps", "topk"), list(product([1, 2, 3, 16], [1, 2, 4, 16])))
def test_largest_tree_is_the_whole_candidate_pool(steps: int, topk: int) -> None:
    assert largest_tree(steps, topk) == pool_size(steps, topk)


@pytest.mark.parametrize(
    ("steps", "topk", "draft_tokens"),
    [(1, 1, 2), (5, 1, 6), (1, 2, 2), (1, 2, 3), (2, 4, 21), (2, 4, 2), (2, 4, 16), (3, 4, 16)],
)
def test_fillable_shapes_are_accepted(steps: int, topk: int, draft_tokens: int) -> None:
    check_shape(steps, topk, draft_tokens)


@pytest.mark.parametrize(
    ("steps", "topk", "draft_tokens", "words"),
    [
        (2, 1, 16, "draft_tokens must be steps \\+ 1 = 3"),
        (2, 1, 2, "steps=1"),
        (1, 2, 4, "= 3"),
        (2, 4, 22, "= 21"),
        (2, 4, 1, "2 <= draft_tokens"),
    ],
)
def test_shapes_that_cannot_be_filled_name_the_rule(steps: int, topk: int, draft_tokens: int, words: str) -> None:
    with pytest.raises(KnobError, match=words) as caught:
        check_shape(steps, topk, draft_tokens)
    assert caught.value.code == "inconsistent"


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"treshold": 3}, "unknown_knob", "unknown knob 'treshold'; the knobs are spec, policy, threshold"),
        ({"x" * 1000: 3}, "unknown_knob", "x\\.\\.\\.; the knobs"),
        ({"threshold": -1}, "bad_value", "got -1, expected a whole number from 0 to 4096"),
        ({"threshold": 4097}, "bad_value", "from 0 to 4096"),
        ({"threshold": True}, "bad_value", "got True"),
        ({"threshold": 2.0}, "bad_value", "got 2.0"),
        ({"threshold": None}, "bad_value", "got None"),
        ({"threshold": [8]}, "bad_value", "got \\[8\\]"),
        ({"threshold": "eight"}, "bad_value", "got 'eight'"),
        ({"threshold": "1_0"}, "bad_value", "got '1_0'"),
        ({"threshold": "9" * 5000}, "bad_value", "9\\.\\.\\., expected"),
        ({"spec": "maybe"}, "bad_value", "expected one of auto, on, off"),
        ({"spec": True}, "bad_value", "expected one of auto, on, off"),
        ({"topk": 1}, "inconsistent", "topk=1 is a chain"),
        ({"steps": 1, "draft_tokens": 16}, "inconsistent", "= 5"),
    ],
)
def test_bad_changes_are_refused_whole(changes: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(KnobError, match=words) as caught:
        apply_changes(Knobs(), {"hysteresis": 1, **changes})
    assert caught.value.code == code
    assert len(str(caught.value)) < 300


def test_a_chain_comes_with_its_size() -> None:
    """Nothing is adjusted silently: topk=1 alone is refused, with steps and draft_tokens it is one change."""
    knobs = apply_changes(Knobs(), {"topk": "1", "steps": "4", "draft_tokens": "5"})
    assert (knobs.topk, knobs.steps, knobs.draft_tokens) == (1, 4, 5)


def test_defaults_are_consistent_and_known() -> None:
    knobs = Knobs()
    check_shape(knobs.steps, knobs.topk, knobs.draft_tokens)
    assert apply_changes(knobs, {name: getattr(knobs, name) for name in KNOBS}) == knobs


@pytest.mark.parametrize(
    ("threshold", "hysteresis", "resume_at"),
    [(0, -1, 0), (1, -1, 1), (4, -1, 3), (16, -1, 14), (4, 0, 4), (4, 4, 1), (4, 9, 1), (0, 5, 0)],
)
def test_resume_point(threshold: int, hysteresis: int, resume_at: int) -> None:
    """Back at <= max(1, threshold - h); a threshold of 0 never speculates."""
    assert Knobs(threshold=threshold, hysteresis=hysteresis).resume_at == resume_at

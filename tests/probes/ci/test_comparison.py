"""Comparing outputs: the near-tie rule, and going on from the reference's text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from probes.ci.comparison import Tally, compare, first_difference
from probes.ci.openai_client import Answer

PROMPT = [90, 91]
REFERENCE = Answer(prompt_ids=PROMPT, token_ids=[1, 2, 3, 4, 5], gaps=[2.0, 0.0005, 2.0, 0.0005, 2.0])
LIMIT = 1e-3


class Engine:
    """Continues any prompt by the reference, except where told otherwise."""

    def __init__(self, *answers: list[int]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[int], int]] = []

    def go_on(self, ids: Sequence[int], tokens: int) -> list[int]:
        self.asked.append((list(ids), tokens))
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("expected", "found", "index"),
    [([1, 2], [1, 2], None), ([1, 2], [1, 3], 1), ([1, 2], [1], 1), ([1], [1, 2], 1), ([], [], None)],
)
def test_first_difference(expected: list[int], found: list[int], index: int | None) -> None:
    assert first_difference(expected, found) == index


def test_equal_outputs_ask_for_nothing() -> None:
    engine = Engine()
    assert compare("p", REFERENCE, [1, 2, 3, 4, 5], LIMIT, engine.go_on) == []
    assert engine.asked == []


def test_a_near_tie_is_excused_and_the_rest_compared_teacher_forced() -> None:
    """What follows an excused token is nobody's business; what follows the reference's own token is compared."""
    engine = Engine([3, 4, 5])
    (difference,) = compare("p", REFERENCE, [1, 7, 8, 9, 9], LIMIT, engine.go_on)
    assert (difference.position, difference.expected, difference.found) == (1, 2, 7)
    assert difference.excused
    assert engine.asked == [([90, 91, 1, 2], 3)]


def test_near_ties_one_after_the_other() -> None:
    engine = Engine([3, 6, 0], [5])
    differences = compare("p", REFERENCE, [1, 7, 8, 9, 9], LIMIT, engine.go_on)
    assert [(difference.position, difference.excused) for difference in differences] == [(1, True), (3, True)]
    assert engine.asked == [([90, 91, 1, 2], 3), ([90, 91, 1, 2, 3, 4], 1)]


def test_a_difference_behind_a_near_tie_is_found() -> None:
    """The clause must not hide a fault: after the excused token the engine goes wrong where nothing was close."""
    engine = Engine([6, 4, 5])
    differences = compare("p", REFERENCE, [1, 7, 3, 4, 5], LIMIT, engine.go_on)
    assert [(difference.position, difference.excused) for difference in differences] == [(1, True), (2, False)]
    tally = Tally(outputs=1, tokens=5, differences=differences)
    assert (tally.excused, tally.identical) == (1, False)


def test_a_clear_difference_is_not_excused_and_ends_the_comparison() -> None:
    engine = Engine()
    (difference,) = compare("p", REFERENCE, [1, 2, 9, 4, 5], LIMIT, engine.go_on)
    assert not difference.excused
    assert engine.asked == []
    assert "position 2: token 9 for token 3, the reference's top two are 2 apart: NOT EXCUSED" in difference.text


def test_the_limit_itself_is_not_below_the_limit() -> None:
    reference = Answer(prompt_ids=PROMPT, token_ids=[1], gaps=[LIMIT])
    (difference,) = compare("p", reference, [2], LIMIT, Engine().go_on)
    assert not difference.excused


@pytest.mark.parametrize("found", [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [1], []])
def test_a_wrong_length_is_never_a_near_tie(found: list[int]) -> None:
    (difference,) = compare("p", REFERENCE, found, 1e9, Engine().go_on)
    assert not difference.excused


def test_a_near_tie_in_the_last_token_ends_it() -> None:
    reference = Answer(prompt_ids=PROMPT, token_ids=[1, 2], gaps=[1.0, 0.0])
    engine = Engine()
    (difference,) = compare("p", reference, [1, 3], LIMIT, engine.go_on)
    assert difference.excused
    assert engine.asked == []


def test_nothing_compared_is_not_identical() -> None:
    assert not Tally().identical
    assert Tally(outputs=1, tokens=5).identical

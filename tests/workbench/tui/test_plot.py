"""Areas, bars and scales as text."""

from __future__ import annotations

import pytest

from workbench.tui.plot import ASCII, BLOCKS, area, bar, coloured, glyphs_for, nice_top, scale_text, stacked


def test_area_in_eighths() -> None:
    assert area([0, 1, 8, 9, 16], 2, 0, 16, BLOCKS) == ["   ▁█", "▁▁███"]


def test_nothing_is_a_blank_and_zero_is_not() -> None:
    """B61: "no data" and 0 differ."""
    assert area([None, 0.0, None], 1, 0, 8, BLOCKS) == [" ▁ "]


def test_values_beyond_the_scale_end_at_its_edges() -> None:
    assert area([-5, 50], 1, 0, 10, BLOCKS) == ["▁█"]


def test_what_waits_stands_on_what_runs_and_is_never_hidden() -> None:
    assert stacked([(2, 2), (2, 4), (3.9, 4.0), None], 4, 0, 4, BLOCKS) == [" ░░ ", " ░█ ", "███ ", "███ "]


def test_ascii_has_no_other_character() -> None:
    """B108: a console without the blocks."""
    text = "".join([*area([0, 1, 2, 3, 4], 2, 0, 4, ASCII), *stacked([(1, 3)], 3, 0, 3, ASCII), bar(0.3, 10, ASCII)])
    assert text.isascii()
    assert area([1, 2, 3, 4], 1, 0, 4, ASCII) == [".:|#"]


def test_bar_shows_anything_above_nothing() -> None:
    assert bar(0.0, 4, BLOCKS) == "░░░░"
    assert bar(0.001, 4, BLOCKS) == "▏░░░"
    assert bar(0.5, 4, BLOCKS) == "██░░"
    assert bar(1.0, 4, BLOCKS) == "████"
    assert bar(1.7, 4, BLOCKS) == "████"
    assert bar(0.3, 10, ASCII) == "###......."


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.9, 1), (1, 1), (1.1, 1.2), (2.4, 2.5), (7, 8), (81, 100), (230, 250), (1001, 1200)]
)
def test_scales_end_at_round_numbers(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_scale_text_is_short() -> None:
    assert [scale_text(value) for value in (0, 1.5, 80, 1500, 20_000, 3e6)] == ["0", "1.5", "80", "1500", "20k", "3M"]


@pytest.mark.parametrize(
    ("environment", "glyphs"),
    [
        ({}, BLOCKS),
        ({"LANG": "C.UTF-8", "TERM": "xterm-256color"}, BLOCKS),
        ({"LANG": "en_US.utf8"}, BLOCKS),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII),  # Python's own doing
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, ASCII),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, ASCII),
    ],
)
def test_ascii_where_the_terminal_says_so(environment: dict[str, str], glyphs: object) -> None:
    """B108."""
    assert glyphs_for(environment) is glyphs


def test_words_of_one_role_are_one_word() -> None:
    assert coloured("aabb", ["x", "x", "y", "y"]) == [("aa", "x"), ("bb", "y")]
    assert coloured("", []) == []

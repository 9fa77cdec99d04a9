"""B114: whatever a name contains, a column has its width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from workbench.cell_text import clean, fit, width_of, wrap

HARD = [
    "plain",
    "日本語のモデル",
    "👩‍👩‍👧 family",
    "e\u0301 combining",
    "שלום rtl",
    "\ufffd unknown",
    "tab\tnew\nline",
    "\x1b[31mred\x1b[0m",
    "❤️ selector",
    "\u202eoverride",
    "",
]


@pytest.mark.parametrize("text", HARD)
@pytest.mark.parametrize("width", [1, 2, 3, 7, 20])
def test_fit_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    """B114."""
    assert cell_len(fit(text, width)) == width
    assert cell_len(fit(text, width, "right")) == width


@pytest.mark.parametrize("text", HARD)
def test_clean_leaves_no_control_and_no_joiner(text: str) -> None:
    """B114, and no name can send an escape code to the terminal."""
    cleaned = clean(text)
    assert cleaned.isprintable() or cleaned == ""
    assert "\u200d" not in cleaned
    assert "\x1b" not in cleaned
    assert "\u202e" not in cleaned


def test_cut_ends_in_an_ellipsis_and_never_in_half_a_character() -> None:
    assert fit("日本語", 4) == "日 …"
    assert fit("日本語", 5) == "日本…"
    assert fit("abcdef", 4) == "abc…"
    assert fit("ab", 4, "right") == "  ab"
    assert width_of("日本") == 4


@pytest.mark.parametrize("text", [*HARD, "日本語の 長い モデル名 と words", "x" * 50])
@pytest.mark.parametrize("width", [4, 9, 30])
def test_wrap_keeps_to_the_width_and_loses_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(text).split())

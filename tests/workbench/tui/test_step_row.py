"""The cells of a row."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.workbench import made_events as made
from workbench.step_words import reason_text, slots_text, widths_text
from workbench.tui.step_detail import entry_lines, step_lines
from workbench.tui.step_row import COLUMNS, column_widths, header_cells, step_cells
from workbench.tui.step_table import row_words
from workbench.tui.timeline import Mark


def cell(step_kwargs: dict[str, object], title: str, width: int = 160) -> str:
    cells = step_cells(made.step(1, 3, **step_kwargs), width)  # type: ignore[arg-type]
    return cells[[column.title for column in COLUMNS].index(title)].strip()


@pytest.mark.parametrize("width", [77, 80, 99, 135, 198, 300])
def test_columns_fill_the_width_exactly(width: int) -> None:
    assert sum(column_widths(width)) + len(COLUMNS) - 1 == width


@pytest.mark.parametrize("detail", ["plain", "日本語 👩‍👩‍👧 שלום e\u0301 \ufffd", "\x1b[2J\n\t"])
@pytest.mark.parametrize("width", [79, 120, 200])
def test_rows_are_aligned_whatever_a_reason_contains(detail: str, width: int) -> None:
    """B114."""
    row = "".join(text for text, _ in row_words(made.step(1, reason_detail=detail), width, False))
    assert cell_len(row) == width
    assert "\x1b" not in row


def test_titles_fit_their_columns() -> None:
    for title, column in zip(header_cells(77), COLUMNS, strict=True):
        assert title.strip() == column.title


def test_widths_are_sorted_and_counted() -> None:
    assert widths_text(made.step(1, widths={"1": 3, "16": 7})) == "16×7 1×3"
    assert widths_text(made.prefill(1)) == "·"


def test_slots_are_one_number_until_they_differ() -> None:
    step = made.step(1, 10, spec=False, slots_written=160)
    assert slots_text(made.step(1, 10, spec=False)) == "10"
    assert slots_text(step) == "10!"
    assert reason_text(step).startswith("SLOTS 10/10/160 ")
    assert {role for _, role in row_words(step, 120, False)[1:] if role != "text"} == {"bad"}


def test_a_step_without_verify_has_no_accept_length() -> None:
    """B61: a dot, not 0.00."""
    assert cell({"spec": False}, "acc") == "·"
    assert cell({}, "acc") == "2.33"


def test_time_is_that_of_the_row_s_own_step() -> None:
    """The first plain step after slow speculation shows its own time, not that of the step before it."""
    assert cell({"cpu_us": {"decide": 100, "run": 87_000}, "round_us": 330_100}, "ms") == "87.1"
    assert cell({"cpu_us": {}, "round_us": 330_100}, "ms") == "·"


def test_marks_are_words_across_the_row() -> None:
    text = "".join(text for text, _ in row_words(Mark("gap", "lost 5 step events", severe=True), 80, False))
    assert "GAP: lost 5 step events" in text
    assert cell_len(text) == 80


def test_detail_says_who_set_what_and_which_counts_differ() -> None:
    step = made.step(1, 10, spec=False, slots_written=160)
    text = "\n".join("".join(text for text, _ in line) for line in step_lines(step, 60))
    assert "MISMATCH the allocator reserved 10 slots" in text
    assert "160 rows written" in text
    assert "set slots_reserved by engine.kv.allocator:reserve" in text
    assert "nothing was verified" in text


@pytest.mark.parametrize("width", [40, 62, 79, 120])
def test_detail_stays_within_its_pane(width: int) -> None:
    for line in entry_lines(made.step(1, reason_detail="word " * 40), width):
        assert cell_len("".join(text for text, _ in line)) <= width


def test_detail_of_nothing() -> None:
    assert "no step selected" in entry_lines(None, 80)[0][0][0]

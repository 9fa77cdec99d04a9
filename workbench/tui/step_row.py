"""What one row of the step table says: columns, how wide each may get, and the text of their cells. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from probes.events import StepEvent
from workbench.cell_text import Align, fit
from workbench.step_words import reason_text, slots_text, took_text, widths_text
from workbench.tui.step_order import StepOrder

MODE_WORDS = {"spec": "SPEC", "plain": "PLAIN", "prefill": "PREFILL", "mixed": "MIXED"}


def prefill_text(step: StepEvent) -> str:
    """``2:512``: prefilling requests : their prompt tokens in this step; a dot when none."""
    return f"{step.prefill_requests}:{step.prefill_tokens}" if step.prefill_tokens else "·"


def accept_text(step: StepEvent) -> str:
    return f"{step.accept_length:.2f}" if step.accept_length is not None else "·"


@dataclass(frozen=True)
class Column:
    """One column: its title, its least and most cells, and how a step fills it."""

    title: str
    text: Callable[[StepEvent], str]
    least: int
    most: int
    align: Align = "right"


COLUMNS = (
    Column("step", lambda step: str(step.step), 6, 9),
    Column("mode", lambda step: MODE_WORDS.get(step.mode, step.mode), 7, 8, "left"),
    Column("reqs", lambda step: str(step.requests), 4, 5),
    Column("prompt", prefill_text, 6, 9),
    Column("width", widths_text, 8, 16, "left"),
    Column("slots", slots_text, 5, 6),
    Column("emit", lambda step: str(step.emitted), 4, 5),
    Column("acc", accept_text, 4, 6),
    Column("ms", took_text, 5, 8),
    Column("que", lambda step: str(step.queue), 3, 5),
    Column("reason", reason_text, 16, 10_000, "left"),
)


@lru_cache(maxsize=16)
def column_widths(total: int) -> tuple[int, ...]:
    """Cells of every column, one cell between them, for a table ``total`` cells wide.

    Every column first gets its least; then, left to right, up to its most while the reason keeps
    40 cells; the reason takes the rest.
    """
    widths = [column.least for column in COLUMNS]
    spare = total - sum(widths) - (len(COLUMNS) - 1)
    for index, column in enumerate(COLUMNS[:-1]):
        grow = min(column.most - column.least, max(0, spare - 28))
        widths[index] += grow
        spare -= grow
    widths[-1] = max(0, widths[-1] + spare)
    return tuple(widths)


def header_cells(total: int, order: StepOrder | None = None) -> list[str]:
    """The titles; the sorted column's has an arrow, for which a tight title gives its last letter."""
    widths = column_widths(total)
    cells: list[str] = []
    for column, width in zip(COLUMNS, widths, strict=True):
        is_sorted = order is not None and order.column == column.title
        title = column.title[: width - 1] + order.arrow if order and is_sorted else column.title
        cells.append(fit(title, width, column.align))
    return cells


def step_cells(step: StepEvent, total: int) -> list[str]:
    """The cells of one row, each exactly as wide as its column."""
    widths = column_widths(total)
    return [fit(column.text(step), width, column.align) for column, width in zip(COLUMNS, widths, strict=True)]

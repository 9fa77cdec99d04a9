"""The table of steps, drawn on the Line API: a row costs something only while it is on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.message import Message
from textual.strip import Strip

from workbench.step_words import slots_agree
from workbench.tui.line_panel import ROLE_CLASSES, RoleStyles, Word
from workbench.tui.scroll_mark import scroll_mark
from workbench.tui.step_filter import StepFilter
from workbench.tui.step_order import StepOrder, next_order
from workbench.tui.step_row import COLUMNS, header_cells, step_cells
from workbench.tui.step_rows import AllRows, FilteredRows, Rows, SortedRows
from workbench.tui.timeline import Entry, Mark, Timeline

MODE_ROLES = {"spec": "spec", "plain": "plain", "prefill": "prefill", "mixed": "mixed"}
MARK_WORDS = {
    "knob": "KNOB",
    "gap": "GAP",
    "restart": "RESTART",
    "alert": "ALERT",
    "drop": "DROPPED",
    "malformed": "UNREADABLE",
    "gone": "GONE",
    "skipped": "SKIPPED",
}
GUTTER = 1
HEADER = 1
WHEEL_ROWS = 3
SLICE_S = 0.03
"""Seconds a filter looks through the past between two paints."""


def row_words(entry: Entry, width: int, selected: bool) -> list[Word]:
    """One row as words with roles, ``width`` cells wide."""
    gutter: Word = ("›" if selected else " ", "strong")
    if isinstance(entry, Mark):
        rule = f"─ {MARK_WORDS[entry.kind]}: {entry.text} "
        return [gutter, (rule, "bad" if entry.severe else "note"), ("─" * max(0, width - len(rule) - GUTTER), "dim")]
    agree = slots_agree(entry)
    words = [gutter]
    for column, cell in zip(COLUMNS, step_cells(entry, width - GUTTER), strict=True):
        role = "text" if agree else "bad"
        if agree and column.title == "mode":
            role = MODE_ROLES.get(entry.mode, "text")
        elif agree and (column.title == "reason" or cell.strip() == "·"):
            role = "dim"
        words += [(cell, role), (" ", "text")]
    return words[:-1]


class StepTable(RoleStyles, can_focus=True):
    """Follows the newest step, or is frozen on a snapshot that one can walk through while the engine goes on.

    A filter leaves rows out, live or frozen; an order freezes, because rows that move away cannot be read.
    """

    DEFAULT_CSS = "StepTable { height: 1fr; width: 1fr; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES | {"table--header", "table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f,space", "freeze", "Freeze", key_display="f"),
        Binding("o", "sort", "Sort", show=False),
        Binding("O", "turn", "Turn the order", show=False),
        Binding("up,k", "move(-1)", "Select", show=False),
        Binding("down,j", "move(1)", "Select next", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "Oldest", show=False),
        Binding("end,G", "follow", "Newest", show=False),
    ]

    class Selected(Message):
        """A person selected a row, or froze the table, or let it follow again."""

        def __init__(self, entry: Entry | None) -> None:
            super().__init__()
            self.entry = entry

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, StepTable.Selected)

    def __init__(self, timeline: Timeline, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._live = timeline
        self._frozen: Timeline | None = None
        self._rows: Rows = AllRows(timeline)
        self._filtered: FilteredRows | None = None
        self._strips: LRUCache[tuple[int, int, bool], Strip] = LRUCache(1)
        self._home: int | None = None  # number of the row that a person selected last
        self._anchor: int | None = None  # number of a row to stay at while a filter is still looking
        self.filter: StepFilter | None = None
        self.order: StepOrder | None = None
        self.top = 0
        """Position of the row on the first line."""
        self.cursor = -1
        """Position of the selected row; the newest while following."""

    @property
    def is_following(self) -> bool:
        return self._frozen is None

    @property
    def newer(self) -> int:
        """Rows that came since the table was frozen, whether a filter would show them or not."""
        return self._live.end - self._frozen.end if self._frozen else 0

    @property
    def entry(self) -> Entry | None:
        """The selected row's entry."""
        return self._rows.row(self.cursor)

    @property
    def page(self) -> int:
        """Rows that fit."""
        return max(1, self.size.height - HEADER)

    @property
    def filtered(self) -> FilteredRows | None:
        """The steps that pass, as far as the filter has looked; None without a filter."""
        return self._filtered

    @property
    def timeline(self) -> Timeline:
        """What the table shows rows of: the live one, or the snapshot it is frozen on."""
        return self._frozen or self._live

    def sync(self) -> bool:
        """Take in what the timeline got since the last call; called at the screen's pace, not the bus's.

        True when another row may be selected now.
        """
        if not self._rows.advance(SLICE_S):
            return False
        if self.is_following:
            self.cursor = self._rows.end - 1
            self._show(self.cursor)
            return True
        if self._anchor is not None:
            self._stay_at(self._anchor)
        self.refresh()  # a filter found older rows
        return self._anchor is not None

    def freeze(self) -> None:
        """Stop following; the rows stay where they are."""
        if self._frozen is None:
            self._frozen = self._live.snapshot()
            self._rows = self._rows.frozen(self._frozen)
            self._filtered = self._rows if isinstance(self._rows, FilteredRows) else None

    def follow(self) -> None:
        """Go on with the newest step, in the order of time."""
        self._frozen = self.order = self._anchor = None
        self._show_rows()
        self.cursor = self._rows.end - 1
        self._show(self.cursor)
        self.post_message(self.Selected(self.entry))

    def select(self, position: int) -> None:
        """Select a row by position, kept within what there is; a table that followed freezes."""
        self.freeze()
        self._anchor = None
        self._move_cursor(position)
        self._keep_home()
        self.post_message(self.Selected(self.entry))

    def select_number(self, number: int) -> None:
        """Select the timeline's row of that number, or the nearest one shown."""
        self.freeze()
        self._anchor = self._home = number
        self._stay_at(number)
        self.post_message(self.Selected(self.entry))

    def set_filter(self, wanted: StepFilter | None) -> None:
        """Show only steps that pass, or all rows again."""
        self.filter = wanted
        self._show_rows()
        self._again()

    def set_order(self, order: StepOrder | None) -> None:
        """Sort the rows of now, which freezes; None: back to the order of time, still frozen."""
        if self.is_following:
            self._keep_home()
        self.freeze()
        self.order = order
        self._show_rows()
        if order is None:
            self._again()
        else:
            self._anchor = None
            self._move_cursor(0)
            self.post_message(self.Selected(self.entry))

    def _show_rows(self) -> None:
        """Make the rows anew from timeline, filter and order; positions before mean nothing after."""
        timeline = self.timeline
        self._filtered = FilteredRows(timeline, self.filter) if self.filter else None
        rows: Rows = self._filtered or AllRows(timeline)
        rows.advance(SLICE_S)
        self._rows = SortedRows(rows, timeline, self.order) if self.order else rows
        self._strips.clear()

    def _again(self) -> None:
        """After other rows: the newest while following, else where one was."""
        if self.is_following or self._home is None:
            self._move_cursor(self._rows.end - 1)
        else:
            self._anchor = self._home
            self._stay_at(self._home)
        self.post_message(self.Selected(self.entry))

    def _stay_at(self, number: int) -> None:
        self._move_cursor(self._rows.nearest(number))
        if self._rows.is_complete:
            self._anchor = None

    def _keep_home(self) -> None:
        """What is selected now is what a person wants to look at, whatever a filter leaves out on the way."""
        if self._rows.first <= self.cursor < self._rows.end:
            self._home = self._rows.number(self.cursor)

    def _move_cursor(self, position: int) -> None:
        self.cursor = max(self._rows.first, min(position, self._rows.end - 1))
        self._show(self.cursor)

    def _show(self, position: int) -> None:
        """Bring a row into view, with as little movement as it takes."""
        self._move_top(max(position - self.page + 1, min(self.top, position)))

    def _move_top(self, top: int) -> None:
        self.top = max(self._rows.first, min(top, self._rows.end - self.page))
        self.refresh()

    def action_freeze(self) -> None:
        if self.is_following:
            self.select(self.cursor)
        else:
            self.follow()

    def action_sort(self) -> None:
        self.set_order(next_order(self.order))

    def action_turn(self) -> None:
        if self.order:
            self.set_order(self.order.turned())

    def action_move(self, rows: int) -> None:
        self.select(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.select(self.cursor + pages * self.page)

    def action_first(self) -> None:
        self.select(self._rows.first)

    def action_follow(self) -> None:
        if self.order:
            self.select(self._rows.end - 1)  # the last of the order; f goes on with time
        else:
            self.follow()

    def on_resize(self, event: events.Resize) -> None:
        # Two pages: a strip is some thirty objects, and the garbage collector looks through all that are kept.
        self._strips = LRUCache(2 * self.page)
        self._show(self.cursor)

    def on_click(self, event: events.Click) -> None:
        if event.y >= HEADER:
            self.select(self.top + event.y - HEADER)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(-WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(WHEEL_ROWS)

    def _wheel(self, rows: int) -> None:
        self.freeze()
        self._move_top(self.top + rows)
        self.post_message(self.Selected(self.entry))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.size.width - 1  # the last column is the scrollbar's
        if y < HEADER:
            header = self.get_component_rich_style("table--header")
            return self.strip([(" " + " ".join(header_cells(width - GUTTER, self.order)), "dim")], width + 1, header)
        first, end = self._rows.first, self._rows.end
        mark = scroll_mark(y - HEADER, self.page, self.top - first, self.page, end - first)
        return Strip.join([self._row(self.top + y - HEADER, width), self.strip([(mark, "dim")], 1)])

    def _row(self, position: int, width: int) -> Strip:
        selected = position == self.cursor
        key = (position, width, selected)
        cached = self._strips.get(key)
        if cached is not None:
            return cached
        entry = self._rows.row(position)
        if entry is None:
            return self.strip([], width)
        # Only the background: the words keep their roles' colours.
        extra = Style(bgcolor=self.get_component_rich_style("table--cursor").bgcolor, bold=True) if selected else None
        strip = self.strip(row_words(entry, width, selected), width, extra)
        self._strips[key] = strip
        return strip

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
from workbench.tui.step_row import COLUMNS, header_cells, step_cells
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
}
GUTTER = 1
HEADER = 1
WHEEL_ROWS = 3


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
    """Follows the newest step, or is frozen on a snapshot that one can walk through while the engine goes on."""

    DEFAULT_CSS = "StepTable { height: 1fr; width: 1fr; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES | {"table--header", "table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f,space", "freeze", "Freeze/follow", key_display="f"),
        Binding("up,k", "move(-1)", "Select", key_display="↑↓"),
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
        self._drawn_end = -1
        self._strips: LRUCache[tuple[int, int, bool], Strip] = LRUCache(512)
        self.top = 0
        """Number of the row on the first line."""
        self.cursor = -1
        """Number of the selected row; the newest while following."""

    @property
    def is_following(self) -> bool:
        return self._frozen is None

    @property
    def newer(self) -> int:
        """Rows that came since the table was frozen."""
        return self._live.end - self._frozen.end if self._frozen else 0

    @property
    def entry(self) -> Entry | None:
        """The selected row's entry."""
        return self._view.row(self.cursor)

    @property
    def page(self) -> int:
        """Rows that fit."""
        return max(1, self.size.height - HEADER)

    @property
    def _view(self) -> Timeline:
        return self._frozen or self._live

    def sync(self) -> bool:
        """Take in what the timeline got since the last call; called at the screen's pace, not the bus's.

        True when another row is selected now: the newest one.
        """
        if self._frozen is not None or self._live.end == self._drawn_end:
            return False
        self._drawn_end = self._live.end
        self.cursor = self._live.end - 1
        self._show(self.cursor)
        return True

    def freeze(self) -> None:
        """Stop following; the rows stay where they are."""
        if self._frozen is None:
            self._frozen = self._live.snapshot()

    def follow(self) -> None:
        """Go on with the newest step."""
        self._frozen = None
        self._drawn_end = -1
        self.sync()
        self.post_message(self.Selected(self.entry))

    def select(self, row: int) -> None:
        """Select a row by number, kept within what there is; a table that followed freezes."""
        self.freeze()
        view = self._view
        self.cursor = max(view.first, min(row, view.end - 1))
        self._show(self.cursor)
        self.post_message(self.Selected(self.entry))

    def _show(self, row: int) -> None:
        """Bring a row into view, with as little movement as it takes."""
        self._move_top(max(row - self.page + 1, min(self.top, row)))

    def _move_top(self, top: int) -> None:
        view = self._view
        self.top = max(view.first, min(top, view.end - self.page))
        self.refresh()

    def action_freeze(self) -> None:
        if self.is_following:
            self.select(self.cursor)
        else:
            self.follow()

    def action_move(self, rows: int) -> None:
        self.select(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.select(self.cursor + pages * self.page)

    def action_first(self) -> None:
        self.select(0)

    def action_follow(self) -> None:
        self.follow()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
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
            return self.strip([(" " + " ".join(header_cells(width - GUTTER)), "dim")], width + 1, header)
        view = self._view
        mark = scroll_mark(y - HEADER, self.page, self.top - view.first, self.page, len(view))
        return Strip.join([self._row(self.top + y - HEADER, width), self.strip([(mark, "dim")], 1)])

    def _row(self, number: int, width: int) -> Strip:
        selected = number == self.cursor
        key = (number, width, selected)
        cached = self._strips.get(key)
        if cached is not None:
            return cached
        entry = self._view.row(number)
        if entry is None:
            return self.strip([], width)
        # Only the background: the words keep their roles' colours.
        extra = Style(bgcolor=self.get_component_rich_style("table--cursor").bgcolor, bold=True) if selected else None
        strip = self.strip(row_words(entry, width, selected), width, extra)
        self._strips[key] = strip
        return strip

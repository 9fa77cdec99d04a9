"""The table of steps, drawn on the Line API: a row costs something only while it is on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.attach.line_panel import ROLE_CLASSES, RoleStyles, Word
from workbench.attach.step_row import COLUMNS, header_cells, step_cells
from workbench.attach.timeline import Entry, Mark, Timeline
from workbench.step_words import slots_agree

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


class StepTable(ScrollView, RoleStyles, can_focus=True):
    """Follows the newest step, or is frozen on a snapshot that one can walk through while the engine goes on."""

    DEFAULT_CSS = "StepTable { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }"
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
        """Another row is selected, or the table froze or follows again."""

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
        self.cursor = -1

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
    def _view(self) -> Timeline:
        return self._frozen or self._live

    def sync(self) -> None:
        """Take in what the timeline got since the last call; called at the screen's pace, not the bus's."""
        if self._frozen is not None or self._live.end == self._drawn_end:
            return
        self._drawn_end = self._live.end
        self.cursor = self._live.end - 1
        self._resize_view()
        self.scroll_to(y=self.max_scroll_y, animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Selected(self.entry))

    def freeze(self) -> None:
        """Stop following; the rows stay where they are."""
        if self._frozen is None:
            self._frozen = self._live.snapshot()
            self._resize_view()
            self.refresh()

    def follow(self) -> None:
        """Go on with the newest step."""
        self._frozen = None
        self._drawn_end = -1
        self.sync()

    def move(self, rows: int) -> None:
        """Move the selection; a table that followed freezes."""
        self.freeze()
        self.select(self.cursor + rows)

    def select(self, row: int) -> None:
        """Select a row by number, kept within what there is, and bring it into view."""
        view = self._view
        self.cursor = max(view.first, min(row, view.end - 1))
        line, page = self.cursor - view.first, max(1, self.size.height - HEADER)
        if line < self.scroll_offset.y:
            self.scroll_to(y=line, animate=False, force=True, immediate=True)
        elif line >= self.scroll_offset.y + page:
            self.scroll_to(y=line - page + 1, animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Selected(self.entry))

    def action_freeze(self) -> None:
        if self.is_following:
            self.freeze()
            self.post_message(self.Selected(self.entry))
        else:
            self.follow()

    def action_move(self, rows: int) -> None:
        self.move(rows)

    def action_page(self, pages: int) -> None:
        self.move(pages * max(1, self.size.height - HEADER))

    def action_first(self) -> None:
        self.freeze()
        self.select(self._view.first)

    def action_follow(self) -> None:
        self.follow()

    def _resize_view(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._view) + HEADER)

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        self._resize_view()
        if self.is_following:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True, immediate=True)

    def on_click(self, event: events.Click) -> None:
        if event.y >= HEADER:
            self.freeze()
            self.select(self._view.first + self.scroll_offset.y + event.y - HEADER)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.freeze()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y < HEADER:
            header = self.get_component_rich_style("table--header")
            return self.strip([(" " + " ".join(header_cells(width - GUTTER)), "dim")], width, header)
        number = self._view.first + self.scroll_offset.y + y - HEADER
        selected = number == self.cursor
        key = (number, width, selected)
        cached = self._strips.get(key)
        if cached is not None:
            return cached
        entry = self._view.row(number)
        if entry is None:
            return Strip.blank(width, self.rich_style)
        # Only the background: the words keep their roles' colours.
        extra = Style(bgcolor=self.get_component_rich_style("table--cursor").bgcolor, bold=True) if selected else None
        strip = self.strip(row_words(entry, width, selected), width, extra)
        self._strips[key] = strip
        return strip

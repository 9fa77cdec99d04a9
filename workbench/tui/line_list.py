"""A list to walk through, drawn on the Line API: an item is one line, made only while it is on the screen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from workbench.tui.line_panel import ROLE_CLASSES, Line, RoleStyles
from workbench.tui.scroll_mark import scroll_mark

Item = TypeVar("Item")

WHEEL_ROWS = 3


class LineList(RoleStyles, Generic[Item], can_focus=True):
    """Keeps the selected item selected while others come above it; at the top it stays at the top."""

    DEFAULT_CSS = "LineList { height: 1fr; width: 1fr; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES | {"table--header", "table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Select", show=False),
        Binding("down,j", "move(1)", "Select next", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000)", "First", show=False),
        Binding("end,G", "move(1000000)", "Last", show=False),
    ]

    class Chosen(Message):
        """A double click. The enter key is the view's own, so that its footer can say what it does."""

    class Moved(Message):
        """Another item is selected."""

    def __init__(
        self,
        line: Callable[[Item, int], Line],
        key: Callable[[Item], Hashable],
        header: Callable[[int], Line],
        *,
        follows_top: bool = False,
        id: str | None = None,
    ) -> None:
        """``line`` and ``header`` get the cells there are; ``follows_top``: an untouched list selects what comes."""
        super().__init__(id=id)
        self._line, self._key, self._header = line, key, header
        self._follows_top = follows_top
        self._items: Sequence[Item] = ()
        self._drawn: object = None
        self._at: Hashable = None  # key of the selected item; None: the first
        self._top = 0
        self._painted: dict[int, tuple[Line, str, bool]] = {}

    def show(self, items: Sequence[Item], version: object) -> None:
        """Show items; nothing is done while ``version`` stays the same."""
        if version == self._drawn:
            return
        self._drawn, self._items = version, items
        self._scroll_to_cursor()
        changed = [y for y in range(1, self.size.height) if self._row(y) != self._painted.get(y)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    @property
    def cursor(self) -> int:
        """Index of the selected item; 0 when that item has gone."""
        if self._at is None:
            return 0
        return next((index for index, item in enumerate(self._items) if self._key(item) == self._at), 0)

    @property
    def selected(self) -> Item | None:
        return self._items[self.cursor] if self._items else None

    @property
    def page(self) -> int:
        """Items that fit below the header."""
        return max(1, self.size.height - 1)

    def select(self, index: int) -> None:
        """Select an item by its index, kept within what there is."""
        if not self._items:
            return
        index = max(0, min(index, len(self._items) - 1))
        self._at = None if self._follows_top and index == 0 else self._key(self._items[index])
        self._keep_in_view()
        self.post_message(self.Moved())

    def _keep_in_view(self) -> None:
        self._scroll_to_cursor()
        self.refresh()

    def _scroll_to_cursor(self) -> None:
        cursor = self.cursor
        top = max(cursor - self.page + 1, min(self._top, cursor))
        self._top = max(0, min(top, len(self._items) - self.page))

    def action_move(self, rows: int) -> None:
        self.select(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.select(self.cursor + pages * self.page)

    def on_click(self, event: events.Click) -> None:
        index = self._top + event.y - 1
        if event.y >= 1 and index < len(self._items):
            if index == self.cursor and event.chain > 1:
                self.post_message(self.Chosen())
            else:
                self.select(index)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_move(-WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_move(WHEEL_ROWS)

    def on_resize(self, event: events.Resize) -> None:
        self._keep_in_view()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width - 1  # the last column is the scrollbar's
        if y == 0:
            header = self.get_component_rich_style("table--header")
            return self.strip([(" ", "text"), *self._header(width - 1)], width + 1, header)
        line, mark, is_selected = self._painted[y] = self._row(y)
        extra = Style(bgcolor=self.get_component_rich_style("table--cursor").bgcolor) if is_selected else None
        return Strip.join([self.strip(line, width, extra), self.strip([(mark, "dim")], 1)])

    def _row(self, y: int) -> tuple[Line, str, bool]:
        """What line ``y`` says, its part of the scrollbar, and whether it is the selected one."""
        index = self._top + y - 1
        if index >= len(self._items):
            return [], " ", False
        is_selected = index == self.cursor and self.has_focus
        line = [("›" if is_selected else " ", "strong"), *self._line(self._items[index], self.size.width - 2)]
        return line, scroll_mark(y - 1, self.page, self._top, self.page, len(self._items)), is_selected

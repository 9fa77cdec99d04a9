"""The selected row in full; scrolls when it has more lines than room."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.attach.line_panel import ROLE_CLASSES, Line, RoleStyles
from workbench.attach.step_detail import entry_lines
from workbench.attach.timeline import Entry


class DetailPane(ScrollView, RoleStyles, can_focus=True):
    """Draws ``entry_lines`` of one entry."""

    DEFAULT_CSS = """
    DetailPane { height: 8; border-top: solid $panel; scrollbar-size-vertical: 1; overflow-x: hidden; }
    DetailPane:focus { border-top: solid $spec; }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._entry: Entry | None = None
        self._lines: list[Line] = []

    def show(self, entry: Entry | None) -> None:
        """Show another entry."""
        self._entry = entry
        self._layout()

    def _layout(self) -> None:
        lines = entry_lines(self._entry, self.scrollable_content_region.width)
        if lines != self._lines:
            self._lines = lines
            self.virtual_size = Size(self.scrollable_content_region.width, len(lines))
            self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._layout()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        line = self._lines[index] if index < len(self._lines) else []
        return self.strip(line, self.scrollable_content_region.width)

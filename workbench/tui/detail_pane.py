"""The selected row in full; scrolls when it has more lines than room."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from probes.events import AlertEvent
from workbench.tui.line_panel import Line, RoleStyles
from workbench.tui.scroll_mark import scroll_mark
from workbench.tui.step_detail import entry_lines
from workbench.tui.timeline import Entry


class DetailPane(RoleStyles, can_focus=True):
    """Draws ``entry_lines`` of one entry. Where one has scrolled to stays while the entry changes."""

    DEFAULT_CSS = """
    DetailPane { height: 8; border-top: solid $panel; }
    DetailPane:focus { border-top: solid $spec; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", "Scroll", key_display="↑↓"),
        Binding("down,j", "scroll_by(1)", "Scroll down", show=False),
        Binding("pageup,home,g", "scroll_by(-1000)", "Top", show=False),
        Binding("pagedown,end,G", "scroll_by(1000)", "Bottom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._entry: Entry | None = None
        self._alert: AlertEvent | None = None
        self._lines: list[Line] = []
        self._top = 0

    def show(self, entry: Entry | None, alert: AlertEvent | None = None) -> None:
        """Show another entry; ``alert``: that two counts of this step differed before it ran as it did."""
        self._entry, self._alert = entry, alert
        self._fill()

    def _fill(self) -> None:
        lines = entry_lines(self._entry, self.size.width - 1, self._alert)
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def action_scroll_by(self, lines: int) -> None:
        self._top = max(0, min(self._top + lines, len(self._lines) - self.size.height))
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll_by(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll_by(1)

    def on_resize(self, event: events.Resize) -> None:
        self._fill()

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        first = max(0, min(self._top, len(self._lines) - height))
        line = self._lines[first + y] if first + y < len(self._lines) else []
        mark = scroll_mark(y, height, first, height, len(self._lines))
        return Strip.join([self.strip(line, width - 1), self.strip([(mark, "dim")], 1)])

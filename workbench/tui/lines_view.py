"""A view that is lines of text, drawn anew a few times a second: what stands still on the screen costs nothing."""

from __future__ import annotations

import os
from abc import abstractmethod

from textual import events
from textual.app import ComposeResult

from workbench.tui.line_panel import Line, LinePanel
from workbench.tui.plot import glyphs_for
from workbench.tui.session_state import SessionState
from workbench.tui.view import View

REDRAW_S = 0.25
"""Charts gain a column a second at most; the numbers above the views are the ones that hurry."""


class LinesView(View, can_focus=True):
    """Subclasses say what the lines are. It takes the focus but no keys: else another view would keep it."""

    DEFAULT_CSS = "LinesView > LinePanel { height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs_for(os.environ)
        self._panel = LinePanel()
        self._shown: tuple[SessionState, float] | None = None

    def compose(self) -> ComposeResult:
        yield self._panel

    @abstractmethod
    def lines(self, state: SessionState, now: float, width: int, height: int) -> list[Line]:
        """What to draw in so much room; ``now`` is the screen's clock."""

    def show(self, state: SessionState, now: float) -> None:
        if self._shown is None or not 0 <= now - self._shown[1] < REDRAW_S:
            self._draw(state, now)

    def forget(self) -> None:
        self._shown = None

    def take_focus(self) -> None:
        self.give_keys(self)

    def on_resize(self, event: events.Resize) -> None:
        if self._shown is not None:
            self._draw(*self._shown)

    def _draw(self, state: SessionState, now: float) -> None:
        self._shown = (state, now)
        width, height = self.size
        if width > 0 and height > 0:
            lines = self.lines(state, now, width, height)
            # Always as many as there is room for: another number of lines would be another layout.
            self._panel.show([*lines[:height], *([] for _ in range(height - len(lines)))])

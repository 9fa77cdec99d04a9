"""Acceptance by position and over time, for each setting of the knobs."""

from __future__ import annotations

from workbench.tui.accept_lines import accept_lines
from workbench.tui.line_panel import Line
from workbench.tui.lines_view import LinesView
from workbench.tui.session_state import SessionState


class AcceptView(LinesView):
    """How often the drafts were right, and at which depth they stopped to be."""

    title = "acceptance"

    def lines(self, state: SessionState, now: float, width: int, height: int) -> list[Line]:
        return accept_lines(state, now, width, height, self.glyphs)

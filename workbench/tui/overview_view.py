"""The first view: what an operator wants to know without reading steps."""

from __future__ import annotations

from workbench.tui.line_panel import Line
from workbench.tui.lines_view import LinesView
from workbench.tui.overview_lines import overview_lines
from workbench.tui.session_state import SessionState


class OverviewView(LinesView):
    """Is speculation winning, how full is the KV, and the last minutes as charts."""

    title = "overview"

    def lines(self, state: SessionState, now: float, width: int, height: int) -> list[Line]:
        return overview_lines(state, now, width, height, self.glyphs)

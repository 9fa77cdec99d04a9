"""Every step in a table, the selected one in full beside or below it."""

from __future__ import annotations

from textual.app import ComposeResult

from workbench.tui.detail_pane import DetailPane
from workbench.tui.session_state import SessionState
from workbench.tui.step_table import StepTable
from workbench.tui.timeline import Timeline
from workbench.tui.view import View


class StepsView(View):
    """The step table and the details of the row that is selected in it."""

    title = "steps"

    def __init__(self, timeline: Timeline, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.table = StepTable(timeline, id="steps")
        self.detail = DetailPane(id="detail")

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.detail

    def take_focus(self) -> None:
        self.table.focus()

    def show(self, state: SessionState, now: float) -> None:
        if self.table.sync():
            self.detail.show(self.table.entry)

    def on_step_table_selected(self, message: StepTable.Selected) -> None:
        self.detail.show(message.entry)

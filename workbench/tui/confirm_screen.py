"""Asks before a knob changes: old → new, what will happen, yes or no."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from workbench.tui.dialog import Dialog
from workbench.tui.proposal import Proposal

Nudge = Callable[[int], Proposal]


class ConfirmScreen(Dialog[Proposal | None]):
    """Returns the confirmed proposal, or None. With ``nudge``, + and - move the proposed value first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "confirm", "Yes"),
        Binding("n,escape", "dismiss(None)", "No"),
        Binding("plus,equals_sign", "nudge(1)", "More", show=False),
        Binding("minus", "nudge(-1)", "Less", show=False),
    ]

    def __init__(self, proposal: Proposal, nudge: Nudge | None = None) -> None:
        super().__init__()
        self._proposal = proposal
        self._nudge = nudge

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="title", classes="dialog--title", markup=False)
            yield Static(id="text", classes="dialog--text", markup=False)
            more = "+ more   - less   " if self._nudge else ""
            yield Static(f"{more}y or enter: change it   n or esc: leave it", classes="dialog--keys", markup=False)

    def on_mount(self) -> None:
        self._fill()

    def _fill(self) -> None:
        proposal = self._proposal
        title = f"Change {proposal.title}?" if proposal.is_change else "Nothing to change"
        self.query_one("#title", Static).update(title)
        self.query_one("#text", Static).update("\n".join(proposal.consequences))

    def action_confirm(self) -> None:
        self.dismiss(self._proposal if self._proposal.is_change else None)

    def action_nudge(self, by: int) -> None:
        if self._nudge:
            self._proposal = self._nudge(by)
            self._fill()

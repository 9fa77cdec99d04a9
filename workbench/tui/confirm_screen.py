"""Asks before a knob changes: old → new, what will happen, for how long, yes or no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from workbench.tui.dialog import Dialog
from workbench.tui.prompt_line import PromptLine
from workbench.tui.proposal import Proposal

Nudge = Callable[[int], Proposal]


@dataclass(frozen=True)
class Held:
    """Not yet: other knobs are to change with it."""

    proposal: Proposal


class ConfirmScreen(Dialog[Proposal | Held | None]):
    """Returns the confirmed proposal, or None. With ``nudge``, + and - move the proposed value first; where it
    ``can_hold``, the proposal can be kept back to change more knobs with it."""

    AUTO_FOCUS = ""  # the hidden line to type into would take the keys
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "confirm", "Yes"),
        Binding("n,escape", "dismiss(None)", "No"),
        Binding("t", "duration", "For how long"),
        Binding("w", "why", "Why"),
        Binding("a", "hold", "Another knob too", show=False),
        Binding("plus,equals_sign", "nudge(1)", "More", show=False),
        Binding("minus", "nudge(-1)", "Less", show=False),
    ]

    def __init__(self, proposal: Proposal, nudge: Nudge | None = None, can_hold: bool = False) -> None:
        super().__init__()
        self._proposal = proposal
        self._nudge = nudge
        self._can_hold = can_hold
        self._prompt = PromptLine()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="title", classes="dialog--title", markup=False)
            yield Static(id="text", classes="dialog--text", markup=False)
            yield Static(id="duration", classes="dialog--text", markup=False)
            yield self._prompt
            more = "+ more   - less   " if self._nudge else ""
            hold = "   a: another knob too" if self._can_hold else ""
            keys = f"{more}y or enter: change it   n or esc: leave it\nt: for how long   w: say why{hold}"
            yield Static(keys, classes="dialog--keys", markup=False)

    def on_mount(self) -> None:
        self._fill()

    def _fill(self) -> None:
        proposal = self._proposal
        title = f"Change {proposal.title}?" if proposal.is_change else "Nothing to change"
        self.query_one("#title", Static).update(title)
        self.query_one("#text", Static).update("\n".join(proposal.consequences))
        why = f"\nWhy: {proposal.why}" if proposal.why else ""
        self.query_one("#duration", Static).update(proposal.duration_words + why if proposal.is_change else "")

    def action_confirm(self) -> None:
        self.dismiss(self._proposal if self._proposal.is_change else None)

    def action_duration(self) -> None:
        if self._proposal.is_change:
            self._proposal = self._proposal.with_next_duration()
            self._fill()

    def action_hold(self) -> None:
        if self._can_hold:
            self.dismiss(Held(self._proposal))

    def action_nudge(self, by: int) -> None:
        if self._nudge:
            kept = self._proposal
            self._proposal = replace(self._nudge(by), revert_after_s=kept.revert_after_s, why=kept.why)
            self._fill()

    # The reason, which is kept with the change.

    def action_why(self) -> None:
        self._prompt.open("why", "why", self._proposal.why, "kept with the change, for whoever asks later")

    def on_prompt_line_entered(self, message: PromptLine.Entered) -> None:
        self._proposal = replace(self._proposal, why=message.text.strip())
        self._close_prompt()

    def on_prompt_line_left(self, message: PromptLine.Left) -> None:
        self._close_prompt()

    def _close_prompt(self) -> None:
        self._prompt.close()
        self.set_focus(None)
        self._fill()

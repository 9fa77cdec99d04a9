"""What a person can do to the knobs from any view: ask, confirm, change, undo, and hear what the engine said."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from textual.app import App

from probes.duration import duration_text
from probes.events import KnobEvent
from workbench.step_words import changes_text
from workbench.tui.confirm_screen import ConfirmScreen, Held, Nudge
from workbench.tui.proposal import WHY, NoProposal, Proposal, propose_spec, propose_threshold, propose_undo
from workbench.tui.session_state import SessionState
from workbench.tui.spec_chooser import SpecChooser
from workbench.tui.steering import Applied, Steering, SteeringError


class Say(Protocol):
    """A line of the screen's own, for a while. ``of_view``: it goes when another view comes."""

    def __call__(self, text: str, role: str = "good", seconds: float = 15.0, *, of_view: bool = False) -> None: ...


class SteeringDesk:
    """Puts its questions on the app's screen, and what came of them on its message line."""

    def __init__(self, app: App[Any], steering: Steering, state: SessionState, say: Say) -> None:
        self._app = app
        self._steering = steering
        self._state = state
        self._say = say

    def choose_speculation(self) -> None:
        """Ask for auto, on or off, then for confirmation."""
        if self.knows_knobs():
            self._app.push_screen(SpecChooser(str(self._state.knobs.get("spec"))), self._spec_chosen)

    def _spec_chosen(self, mode: str | None) -> None:
        if mode is not None:
            self.ask(propose_spec(self._state, mode))

    def move_threshold(self, by: int) -> None:
        """Ask for confirmation of a threshold that + and - then move on."""
        if not self.knows_knobs():
            return
        proposal = propose_threshold(self._state, int(self._state.knobs["threshold"]) + by)

        def nudge(by: int) -> Proposal:
            nonlocal proposal
            proposal = propose_threshold(self._state, proposal.new["threshold"] + by)
            return proposal

        self.ask(proposal, nudge)

    def undo(self, change: KnobEvent | None) -> None:
        """Ask to set back what a change set; None: there was none."""
        if not self.knows_knobs():
            return
        if change is None:
            self._say("no knob change is known, so there is nothing to undo", "warn", of_view=True)
            return
        try:
            self.ask(propose_undo(self._state, change))
        except NoProposal as error:
            self._say(str(error), "warn", of_view=True)

    def knows_knobs(self) -> bool:
        """False, and said, while the engine has not told them, or where nothing can be changed."""
        if self._steering.not_here:
            self._say(self._steering.not_here, "warn", of_view=True)
            return False
        if self._state.knobs:
            return True
        self._say("the engine has not said its knobs yet; try again once it is connected", "warn", of_view=True)
        return False

    def ask(
        self,
        proposal: Proposal,
        nudge: Nudge | None = None,
        hold: Callable[[Proposal], None] | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Ask for confirmation, then change.

        ``hold`` takes a proposal that waits for more knobs; ``done`` is called when one is sent or given up.
        """

        def answered(answer: Proposal | Held | None) -> None:
            if isinstance(answer, Held):
                if hold:
                    hold(answer.proposal)
                return
            if done:
                done()
            if answer is None:
                self._say("nothing changed", "dim", seconds=5)
            else:
                self._send(answer)

        self._app.push_screen(ConfirmScreen(proposal, nudge, can_hold=hold is not None), answered)

    def _send(self, proposal: Proposal) -> None:
        self._say(f"asking for {proposal.title} …", "dim")
        # A daemon thread, not a worker: an engine that does not answer must not hold up quitting.
        threading.Thread(target=self._change, args=(proposal,), name="steering", daemon=True).start()

    def _change(self, proposal: Proposal) -> None:
        try:
            applied = self._steering.set_knobs(
                proposal.new, proposal.old, proposal.why or WHY, revert_after_s=proposal.revert_after_s
            )
        except SteeringError as error:
            self._from_thread(self._say, f"not changed: {error}", "bad", 30.0)
        else:
            self._from_thread(self._applied, applied, proposal.revert_after_s)

    def _applied(self, applied: Applied, revert_after_s: float | None) -> None:
        back = f", for {duration_text(revert_after_s)}" if revert_after_s else ""
        self._say(f"{changes_text(applied.old, applied.new)} took effect at step {applied.step}{back}")

    def _from_thread(self, callback: Callable[..., Any], *args: Any) -> None:
        with suppress(RuntimeError):  # the screen is gone; there is nobody left to tell
            self._app.call_from_thread(callback, *args)

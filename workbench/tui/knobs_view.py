"""All knobs with what they mean and may be, and below them who changed what, when and why."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from probes.events import KnobEvent
from probes.knobs import KNOBS
from workbench.cell_text import width_of
from workbench.tui.knob_editor import KnobEditor
from workbench.tui.knob_rows import KnobRow, knob_header, knob_line, knob_rows, meaning_lines, trail_header, trail_line
from workbench.tui.line_list import LineList
from workbench.tui.line_panel import Line, LinePanel
from workbench.tui.proposal import Proposal, propose
from workbench.tui.session_state import SessionState
from workbench.tui.set_command import set_command
from workbench.tui.steering_desk import Say, SteeringDesk
from workbench.tui.view import View


class KnobsView(View):
    """Two lists; what the keys do depends on which one has them. Nothing changes without a confirmation."""

    title = "knobs"
    DEFAULT_CSS = """
    KnobsView #knob-list { height: 9; }
    KnobsView #knob-meaning { background: $surface; }
    KnobsView #knob-trail { border-top: solid $panel; height: 1fr; }
    KnobsView #knob-trail:focus { border-top: solid $spec; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "edit", "Edit", key_display="enter"),
        Binding("u", "undo", "Undo"),
        Binding("c", "copy", "Copy"),
        Binding("x", "drop_held", "Drop what is held", show=False),
        Binding("tab", "other", "Trail", show=False),
    ]

    def __init__(self, desk: SteeringDesk, say: Say, engine: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._desk = desk
        self._say = say
        self._engine = engine
        self._state: SessionState | None = None
        self._held: dict[str, Any] = {}  # knob -> value that waits to be changed with others
        self._now = 0.0  # the engine's time
        self._shown_at = 0.0  # the screen's
        self._knob_count = 0
        self._knobs: LineList[KnobRow] = LineList(knob_line, lambda row: row.name, self._knob_header, id="knob-list")
        self._meaning = LinePanel(id="knob-meaning")
        self._trail: LineList[KnobEvent] = LineList(
            self._trail_line, lambda change: (change.boot_id, change.knob_epoch, change.t), trail_header,
            follows_top=True, id="knob-trail",
        )  # fmt: skip

    def compose(self) -> ComposeResult:
        yield self._knobs
        yield self._meaning
        yield self._trail

    def take_focus(self) -> None:
        self.give_keys(self._knobs)

    def show(self, state: SessionState, now: float) -> None:
        self._state, self._shown_at, self._now = state, now, state.engine_now(now)
        rows = knob_rows(state, self._held, self._now)
        if len(rows) != self._knob_count:
            self._knob_count = len(rows)
            self._knobs.styles.height = max(2, len(rows) + 1)
        self._knobs.show(rows, tuple(rows))
        ages = int(self._now) if self._trail.has_focus or state.trail.reverts else int(self._now / 10)
        self._trail.show(list(reversed(state.trail.changes)), (id(state.trail), state.trail.version, ages))
        self._show_meaning()

    def _show_meaning(self) -> None:
        if self._state is None:
            return
        lines: list[Line] = meaning_lines(self._knobs.selected)
        if self._held:
            held = propose(self._state, self._held).title
            lines.append([("HELD", "warn"), (f"  {held}; enter on another knob adds it, x drops them", "dim")])
        self._meaning.show(lines)

    def _knob_header(self, width: int) -> Line:
        return knob_header(width, self._state is None or self._state.trail.is_whole)

    def _trail_line(self, change: KnobEvent, width: int) -> Line:
        return trail_line(change, width, self._state.trail if self._state else None, self._now)

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        self._show_meaning()

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        self.action_edit()

    def action_other(self) -> None:
        (self._knobs if self._trail.has_focus else self._trail).focus()

    # Changing.

    def action_edit(self) -> None:
        """Edit the selected knob; from the trail, go to the knobs."""
        if self._trail.has_focus:
            self._knobs.focus()
            return
        row = self._knobs.selected
        if row is None or not self._desk.knows_knobs():
            return
        knob = KNOBS.get(row.name)
        if knob is None:
            self._say(f"{row.name} is a knob of a newer engine: use `specwb set {row.name}=…`", "warn", of_view=True)
            return

        def edited(value: str | int | None) -> None:
            if value is None or self._state is None:
                self._say("nothing changed", "dim", seconds=5)
                return
            proposal = propose(self._state, {**self._held, row.name: value})
            self._desk.ask(proposal, hold=self._hold, done=self.action_drop_held)

        self.app.push_screen(KnobEditor(knob, self._held.get(row.name, row.value)), edited)

    def _hold(self, proposal: Proposal) -> None:
        self._held = {name: value for name, value in proposal.new.items() if proposal.old[name] != value}
        self._refresh()

    def action_drop_held(self) -> None:
        """Forget the changes that wait for others."""
        self._held = {}
        self._refresh()

    def _refresh(self) -> None:
        if self._state is not None:
            self.show(self._state, self._shown_at)

    def action_undo(self) -> None:
        """Undo the trail's selected change while one is in the trail, else the newest."""
        if self._state is not None:
            change = self._trail.selected if self._trail.has_focus else self._state.trail.newest
            self._desk.undo(change)

    def action_copy(self) -> None:
        """Copy, and show, the command that makes the selected change, or that sets the knobs as they are.

        The terminal gets it as OSC 52 and does not answer; some ignore it, which is said where the line has room.
        """
        state = self._state
        if state is None or not state.knobs:
            return
        change = self._trail.selected if self._trail.has_focus else None
        values, why = (change.new, change.why) if change else (state.knobs, "")
        command = set_command(self._engine, values, why)
        self.app.copy_to_clipboard(command)
        told = f"copied (if the terminal allows it): {command}"
        if width_of(told) > self.app.size.width:
            told = f"copied: {command}"
        self._say(told, "text", seconds=60.0, of_view=True)

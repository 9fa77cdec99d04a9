"""The screen of one engine: status lines that are always there, and below them one of several views."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.filter import LineFilter, NoColor
from textual.theme import Theme
from textual.widgets import ContentSwitcher, Footer

from probes.clock import Clock
from workbench.step_words import changes_text
from workbench.tui.confirm_screen import ConfirmScreen
from workbench.tui.feed import Feed
from workbench.tui.help_screen import HelpScreen
from workbench.tui.line_panel import ROLE_CSS, Line, LinePanel
from workbench.tui.proposal import Proposal, propose_spec, propose_threshold
from workbench.tui.session_state import SessionState
from workbench.tui.spec_chooser import SpecChooser
from workbench.tui.status_lines import status_lines
from workbench.tui.steering import Applied, Steering, SteeringError
from workbench.tui.step_table import StepTable
from workbench.tui.steps_view import StepsView
from workbench.tui.view import View
from workbench.tui.view_line import view_line

REFRESH_S = 0.1
"""Between two paints, however fast events come."""
WIDE = 150
"""From this many columns on the details stand beside the table."""

THEME = Theme(
    name="specwb",
    dark=True,
    primary="#4fd1a5",
    background="#10141a",
    surface="#1a2029",
    panel="#2b3442",
    foreground="#d7dde6",
    variables={
        "spec": "#4fd1a5",
        "plain": "#e8b45a",
        "prefill": "#6db3f2",
        "mixed": "#b79cf2",
        "bad": "#ff7070",
        "note": "#9fb4cc",
        "footer-key-foreground": "#4fd1a5",
        "footer-background": "#1a2029",
        "scrollbar": "#3a4656",
        "scrollbar-hover": "#4fd1a5",
        "scrollbar-active": "#4fd1a5",
        "scrollbar-background": "#10141a",
        "scrollbar-background-hover": "#10141a",
        "scrollbar-background-active": "#10141a",
        "scrollbar-corner-color": "#10141a",
    },
)


class AttachApp(App[int]):
    """One engine on one screen. Quitting leaves the engine as it is."""

    TITLE = "specwb"
    ENABLE_COMMAND_PALETTE = False
    CSS = (
        ROLE_CSS
        + """
    #status { background: $surface; }
    #body { height: 1fr; }
    .table--header { background: $panel; text-style: bold; }
    .table--cursor { background: $panel; }
    #message { display: none; background: $surface; }
    #message.-shown { display: block; }
    .-wide StepsView { layout: horizontal; }
    .-wide DetailPane { width: 64; height: 1fr; border-top: none; border-left: solid $panel; }
    .-wide DetailPane:focus { border-left: solid $spec; }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"view({number})", "View", show=False) for number in range(1, 10)),
        Binding("s", "speculation", "Speculation"),
        Binding("plus,equals_sign", "threshold(1)", "Threshold", key_display="+ -"),
        Binding("minus", "threshold(-1)", "Threshold down", show=False),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q,ctrl+q", "leave", "Quit", key_display="q", priority=False),
        Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True),
    ]

    def __init__(self, name: str, feed: Feed, clock: Clock, steering: Steering, capacity: int = 20_000) -> None:
        super().__init__()
        self.register_theme(THEME)
        self.theme = "specwb"
        self.engine_name = name
        self.state = SessionState(capacity)
        self._feed = feed
        self._clock = clock
        self._steering = steering
        self._status = LinePanel(id="status")
        self._notice = LinePanel(id="message")
        self._steps = StepsView(self.state.timeline, id="view-steps")
        self._views: list[View] = [self._steps]
        self._current = 0
        self._view_line = LinePanel(id="views")
        self.message_clock = clock
        """By which a message stays for a while: the person's time, not a recording's."""
        self._message: tuple[str, str] | None = None
        self._message_until = 0.0
        self.crash: Exception | None = None
        """The exception that ended the screen."""

    def compose(self) -> ComposeResult:
        yield from self.compose_top()
        yield self._status
        yield self._notice
        yield self._view_line
        with ContentSwitcher(id="body", initial=self._views[self._current].id):
            yield from self._views
        yield Footer(show_command_palette=False)

    def compose_top(self) -> ComposeResult:
        """What stands above the status lines: here nothing, in a replay the player."""
        yield from ()

    def on_mount(self) -> None:
        self._show_view_line()
        self._views[self._current].take_focus()
        self._feed.start()
        self.set_interval(REFRESH_S, self.tick)
        self.tick()

    def on_unmount(self) -> None:
        self._feed.close()

    def on_resize(self, event: events.Resize) -> None:
        self.screen_stack[0].set_class(event.size.width >= WIDE, "-wide")
        self._show_status()

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Textual turns colours to greys for NO_COLOR. A grey is a colour too, and unreadable on a light terminal.
        filters = super().get_line_filters()
        return [*filters, NoColor()] if self.no_color else filters

    def _fatal_error(self) -> None:
        # Textual would print a page of local variables; whoever runs the screen tells the cause in a line and keeps
        # the trace in a file.
        self.crash = self._exception
        self._close_messages_no_wait()

    # The pace: everything that changes on the screen by itself changes here.

    def tick(self) -> None:
        """Take in what came, and paint what it changed."""
        items = self._feed.drain()
        now = self._clock.monotonic()  # after the drain: a player's clock moves in it
        for item in items:
            self.state.apply(item, now)
        self._views[self._current].show(self.state, now)
        self._show_status()

    def _show_status(self) -> None:
        now = self._clock.monotonic()
        self._status.show(status_lines(self.state, self.engine_name, now, self.size.width))
        lines: list[Line] = []
        if self._message and self.message_clock.monotonic() < self._message_until:
            lines.append([self._message])
        table = self._steps.table
        if self._views[self._current] is self._steps and not table.is_following:
            newer = table.newer
            rows = f"{newer} newer row{'' if newer == 1 else 's'}"
            lines.append([("FROZEN", "warn"), (f"  {rows}; f follows again", "dim")])
        self._notice.set_class(bool(lines), "-shown")
        self._notice.show(lines)

    def say(self, text: str, role: str = "good", seconds: float = 15.0) -> None:
        """One line above the table, for a while."""
        self._message, self._message_until = (text, role), self.message_clock.monotonic() + seconds
        self._show_status()

    def on_step_table_selected(self, message: StepTable.Selected) -> None:
        self._show_status()

    # The views.

    def action_view(self, number: int) -> None:
        """Put view ``number`` (from 1) on show."""
        if number > len(self._views):
            return
        self._current = number - 1
        view = self._views[self._current]
        self.query_one(ContentSwitcher).current = view.id
        self._show_view_line()
        view.take_focus()
        self.tick()

    def _show_view_line(self) -> None:
        self._view_line.show([view_line([view.title for view in self._views], self._current)])

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_leave(self) -> None:
        self.exit(0)

    # Steering.

    def action_speculation(self) -> None:
        if self._knows_knobs():
            self.push_screen(SpecChooser(str(self.state.knobs.get("spec"))), self._spec_chosen)

    def _spec_chosen(self, mode: str | None) -> None:
        if mode is not None:
            self._ask(propose_spec(self.state, mode))

    def action_threshold(self, by: int) -> None:
        if not self._knows_knobs():
            return
        proposal = propose_threshold(self.state, int(self.state.knobs["threshold"]) + by)

        def nudge(by: int) -> Proposal:
            nonlocal proposal
            proposal = propose_threshold(self.state, proposal.new["threshold"] + by)
            return proposal

        self._ask(proposal, nudge)

    def _knows_knobs(self) -> bool:
        if self.state.knobs:
            return True
        self.say("the engine has not said its knobs yet; try again once it is connected", "warn")
        return False

    def _ask(self, proposal: Proposal, nudge: Callable[[int], Proposal] | None = None) -> None:
        self.push_screen(ConfirmScreen(proposal, nudge), self._confirmed)

    def _confirmed(self, proposal: Proposal | None) -> None:
        if proposal is None:
            self.say("nothing changed", "dim", seconds=5)
            return
        self.say(f"asking for {proposal.title} …", "dim")
        # A daemon thread, not a worker: an engine that does not answer must not hold up quitting.
        threading.Thread(target=self._change, args=(proposal,), name="steering", daemon=True).start()

    def _change(self, proposal: Proposal) -> None:
        try:
            applied = self._steering.set_knobs(proposal.new, proposal.old, "from the attached screen")
        except SteeringError as error:
            self._from_thread(self.say, f"not changed: {error}", "bad", 30.0)
        else:
            self._from_thread(self._applied, applied)

    def _applied(self, applied: Applied) -> None:
        self.say(f"{changes_text(applied.old, applied.new)} took effect at step {applied.step}")

    def _from_thread(self, callback: Callable[..., Any], *args: Any) -> None:
        with suppress(RuntimeError):  # the screen is gone; there is nobody left to tell
            self.call_from_thread(callback, *args)

"""The screen of one engine: status lines that are always there, and below them one of several views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.filter import LineFilter, NoColor
from textual.theme import Theme
from textual.widgets import ContentSwitcher

from probes.clock import Clock
from workbench.cell_text import width_of, wrap
from workbench.tui.accept_view import AcceptView
from workbench.tui.collector import collector_paused
from workbench.tui.decisions_view import DecisionsView
from workbench.tui.feed import Feed
from workbench.tui.help_screen import HelpScreen
from workbench.tui.key_line import KeyLine
from workbench.tui.knobs_view import KnobsView
from workbench.tui.line_panel import ROLE_CSS, LinePanel, spread
from workbench.tui.overview_view import OverviewView
from workbench.tui.record_key import MakeRecording, RecordKey
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import status_lines
from workbench.tui.steering import Steering
from workbench.tui.steering_desk import SteeringDesk
from workbench.tui.step_link import StepWanted
from workbench.tui.steps_view import StepsView
from workbench.tui.view import View
from workbench.tui.view_line import view_line

REFRESH_S = 0.1
"""Between two paints, however fast events come."""
MESSAGE_LINES = 4
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
    """
    )
    UNLISTED: ClassVar[frozenset[str]] = frozenset()
    """Actions whose keys work, but are not on the line of keys."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"view({number})", "View", show=False) for number in range(1, 10)),
        Binding("s", "speculation", "Spec"),
        Binding("plus,equals_sign", "threshold(1)", "Threshold", key_display="+ -"),
        Binding("minus", "threshold(-1)", "Threshold down", show=False),
        Binding("r", "record", "Rec"),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q,ctrl+q", "leave", "Quit", key_display="q", priority=False),
        Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, priority=True),
    ]

    def __init__(
        self,
        name: str,
        feed: Feed,
        clock: Clock,
        steering: Steering,
        capacity: int = 20_000,
        *,
        view: str = "overview",
        make_recording: MakeRecording | None = None,
    ) -> None:
        """``view``: title of the one that opens. ``make_recording``: None where there is nothing to record."""
        super().__init__()
        self.register_theme(THEME)
        self.theme = "specwb"
        self.engine_name = name
        self.state = SessionState(capacity)
        self._feed = feed
        self._clock = clock
        self.desk = SteeringDesk(self, steering, self.state, self.say)
        self.recording = RecordKey(name, make_recording)
        self._status = LinePanel(id="status")
        self._notice = LinePanel(id="message")
        self._steps = StepsView(self.state.timeline, id="view-steps")
        self._views: list[View] = [
            OverviewView(id="view-overview"),
            self._steps,
            AcceptView(id="view-acceptance"),
            DecisionsView(id="view-decisions"),
            KnobsView(self.desk, self.say, name, id="view-knobs"),
        ]
        self._current = [each.title for each in self._views].index(view)
        self._view_line = LinePanel(id="views")
        self.message_clock = clock
        """By which a message stays for a while: the person's time, not a recording's."""
        self._message: tuple[str, str] | None = None
        self._message_until = 0.0
        self._message_is_of_view = False
        self.when_ready: Callable[[], None] = lambda: None
        """Called once, after the first paint."""
        self.crash: Exception | None = None
        """The exception that ended the screen."""

    def compose(self) -> ComposeResult:
        yield from self.compose_top()
        yield self._status
        yield self._notice
        yield self._view_line
        with ContentSwitcher(id="body", initial=self._views[self._current].id):
            yield from self._views
        yield KeyLine(self.UNLISTED, id="keys")

    def compose_top(self) -> ComposeResult:
        """What stands above the status lines: here nothing, in a replay the player."""
        yield from ()

    def on_mount(self) -> None:
        self._show_view_line()
        self._views[self._current].take_focus()
        self._feed.start()
        self.app_resume_signal.subscribe(self, self._repaint)
        self.set_interval(REFRESH_S, self.tick)
        self.tick()

    def on_ready(self) -> None:
        self.when_ready()

    def _repaint(self, _: object) -> None:
        # After ctrl-z the terminal has forgotten the screen, of which lines that do not change would never come again.
        self.refresh(layout=True)

    def on_unmount(self) -> None:
        self._feed.close()
        self.recording.finish()

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
        with collector_paused():
            now = self._take_in()
        self._views[self._current].show(self.state, now)
        for news in self.recording.take_news():
            self.say(*news, seconds=30.0)
        self._show_status()

    def _take_in(self) -> float:
        """What came, into the state; the screen's time then."""
        items = self._feed.drain()
        now = self._clock.monotonic()  # after the drain: a player's clock moves in it
        for item in items:
            self.state.apply(item, now)
        return now

    def _show_status(self) -> None:
        now = self._clock.monotonic()
        self._status.show(status_lines(self.state, self.engine_name, now, self.size.width))
        if self._message and self.message_clock.monotonic() >= self._message_until:
            self._message = None
        text, role = self._message or ("", "")
        lines = wrap(text, max(20, self.size.width))[:MESSAGE_LINES] if text else []
        self._notice.set_class(bool(lines), "-shown")
        self._notice.show([[(line, role)] for line in lines])
        self._show_view_line()

    def say(self, text: str, role: str = "good", seconds: float = 15.0, *, of_view: bool = False) -> None:
        """One line above the table, for a while. ``of_view``: it answers a key, and goes when another view comes."""
        self._message, self._message_until = (text, role), self.message_clock.monotonic() + seconds
        self._message_is_of_view = of_view
        self._show_status()

    # The views.

    def action_view(self, number: int) -> None:
        """Put view ``number`` (from 1) on show."""
        if number > len(self._views):
            return
        if self._message_is_of_view and number - 1 != self._current:
            self._message = None
        self._current = number - 1
        view = self._views[self._current]
        self.query_one(ContentSwitcher).current = view.id
        self._show_view_line()
        view.take_focus()
        self.tick()

    def _show_view_line(self) -> None:
        words = self.recording.words()
        room = self.size.width - sum(width_of(text) for text, _ in words) - 1
        views = view_line([view.title for view in self._views], self._current, room)
        self._view_line.show([spread(views, words, self.size.width)])

    def on_step_wanted(self, message: StepWanted) -> None:
        """Some view points at a step."""
        self.action_view(self._views.index(self._steps) + 1)
        self._steps.go_to(message.step, message.boot_id)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(is_replay=self.state.is_replay))

    def action_leave(self) -> None:
        self.exit(0)

    # Steering.

    def action_speculation(self) -> None:
        self.desk.choose_speculation()

    def action_threshold(self, by: int) -> None:
        self.desk.move_threshold(by)

    # Recording.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.recording.is_available if action == "record" else super().check_action(action, parameters)

    def action_record(self) -> None:
        """Start to record, or stop and finish the file."""
        self.say(self.recording.toggle(), "dim")

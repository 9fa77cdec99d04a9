"""The screen of a recording: every view of a live engine, and a player above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.replay.bookmark_list import BookmarkList
from workbench.replay.bookmarks import Bookmark
from workbench.replay.place import FORMS, PlaceError
from workbench.replay.player import MARKS, SWITCHES, Player
from workbench.replay.player_help import PlayerHelp
from workbench.replay.player_line import player_lines
from workbench.replay.recording_steering import RecordingSteering
from workbench.replay.text_prompt import TextPrompt
from workbench.time_text import offset_text
from workbench.tui.app import AttachApp
from workbench.tui.line_panel import LinePanel
from workbench.tui.step_table import StepTable

MESSAGE_S = 8.0


class UnknownScreen(Exception):
    """No view has that name; the message lists those there are."""


class ReplayApp(AttachApp):
    """The player's keys are bound here only: a live screen has none of them."""

    CSS = AttachApp.CSS + "#player { background: $panel; }"
    UNLISTED = frozenset({"speculation", "threshold(1)", "edit", "undo"})  # they only say that nothing can be changed
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause", show=False),
        Binding("comma", "step(-1)", "Step back", show=False),
        Binding("full_stop", "step(1)", "Step", show=False),
        Binding("less_than_sign", "speed(-1)", "Slower", show=False),
        Binding("greater_than_sign", "speed(1)", "Faster", show=False),
        Binding("left_square_bracket", "switch(-1)", "Switch before", show=False),
        Binding("right_square_bracket", "switch(1)", "Next switch", show=False),
        Binding("left_curly_bracket", "mark(-1)", "Mark before", show=False),
        Binding("right_curly_bracket", "mark(1)", "Next mark", show=False),
        Binding("colon", "seek", "Go to", show=False),
        Binding("0", "start", "Start", show=False),
        Binding("b", "bookmark", "Bookmark", show=False),
        Binding("B", "bookmarks", "Bookmarks", show=False),
    ]

    def __init__(self, player: Player, screen: str | None = None) -> None:
        """``screen``: title of the view that is shown first.

        Raises:
            UnknownScreen: there is no such view.
        """
        super().__init__(player.engine_name, player.feed, player.clock, RecordingSteering())
        self.player = player
        self.state.is_replay = True
        self.message_clock = player.clock.real
        self._player_panel = LinePanel(id="player")
        self._stood_at: float | None = None  # where the views were drawn while the time stood still
        if screen is not None:
            titles = [view.title for view in self._views]
            if screen not in titles:
                raise UnknownScreen(f"no screen {screen!r}; the screens are {', '.join(titles)}")
            self._current = titles.index(screen)

    def compose_top(self) -> ComposeResult:
        yield self._player_panel

    def on_mount(self) -> None:
        if self.player.trouble:
            self.say(self.player.trouble, "warn")

    def tick(self) -> None:
        # Views that draw a few times a second do so by the clock: of one that stands they would miss the last moment.
        clock = self.player.clock
        stands_at = clock.position if clock.is_paused or clock.is_at_end else None
        if stands_at is not None and stands_at != self._stood_at:
            self._draw_anew()
        self._stood_at = stands_at
        super().tick()

    def _draw_anew(self) -> None:
        for view in self._views:
            view.forget()

    def _show_status(self) -> None:
        super()._show_status()
        self._player_panel.show(player_lines(self.player, self.size.width))

    # The player's keys.

    def action_pause(self) -> None:
        self._did(self.player.toggle())

    def action_step(self, by: int) -> None:
        self._did(self.player.step(by))

    def action_speed(self, by: int) -> None:
        self._did(self.player.change_speed(by))

    def action_switch(self, by: int) -> None:
        self._did(self.player.jump(SWITCHES, by))

    def action_mark(self, by: int) -> None:
        self._did(self.player.jump(MARKS, by))

    def action_start(self) -> None:
        self._did(self.player.seek("start"))

    def action_seek(self) -> None:
        self._ask_text("Go to", f"{FORMS}, +5s, -5s\nenter: go there   esc: stay", self.player.seek, PlaceError)

    def action_bookmark(self) -> None:
        here = self.player.clock.position  # while the name is typed the recording may play on
        where = offset_text(here - self.player.clock.start)
        hint = f"a name, or nothing for {self.player.bookmarks.free_name()!r}\nenter: keep it   esc: do not"
        self._ask_text(f"Bookmark at {where}", hint, lambda name: self.player.set_bookmark(here, name), ValueError)

    def action_bookmarks(self) -> None:
        self.push_screen(BookmarkList(self.player), self._to_bookmark)

    def _to_bookmark(self, bookmark: Bookmark | None) -> None:
        if bookmark is not None:
            self.player.go(bookmark.t)
            self._did(f"at {bookmark.name!r}")

    def action_help(self) -> None:
        self.push_screen(PlayerHelp(), self._help_closed)

    def _help_closed(self, wants_more: bool | None) -> None:
        if wants_more:
            super().action_help()

    def _ask_text(self, title: str, hint: str, take: Callable[[str], str], wrong: type[Exception]) -> None:
        self.push_screen(TextPrompt(title, hint, take, wrong), self._answered)

    def _answered(self, words: str | None) -> None:
        if words is not None:
            self._did(words)

    def _did(self, words: str) -> None:
        """Show where the recording stands now, and say what was done."""
        for table in self.screen_stack[0].query(StepTable):
            if not table.is_following:  # rows of another place
                table.follow()
        self._draw_anew()
        self.tick()
        if words:
            self.say(words, "note", MESSAGE_S)

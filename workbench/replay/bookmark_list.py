"""The bookmarks of a recording: go to one, or remove it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from workbench.cell_text import clean
from workbench.replay.bookmarks import Bookmark
from workbench.replay.player import Player, bookmark_rows
from workbench.tui.dialog import Dialog


class BookmarkList(Dialog[Bookmark | None]):
    """Returns the one to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,B,q", "dismiss(None)", "Leave"),
        Binding("d,delete", "remove", "Remove"),
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
    ]

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player = player

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Bookmarks", classes="dialog--title", markup=False)
            yield OptionList(markup=False)
            yield Static("↑ ↓ enter: go there   d: remove   esc: leave", classes="dialog--keys", markup=False)

    def on_mount(self) -> None:
        self._fill(0)
        self.query_one(OptionList).focus()

    def _fill(self, highlighted: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        rows = bookmark_rows(self._player)
        options.add_options(
            [Option(clean(text)) for _, text in rows] or [Option("none yet; b sets one", disabled=True)]
        )
        if rows:
            options.highlighted = min(highlighted, len(rows) - 1)

    def _chosen(self) -> Bookmark | None:
        index = self.query_one(OptionList).highlighted
        bookmarks = self._player.bookmarks.all
        return bookmarks[index] if index is not None and index < len(bookmarks) else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._chosen())

    def action_remove(self) -> None:
        bookmark = self._chosen()
        if bookmark is not None:
            index = self._player.bookmarks.all.index(bookmark)
            self._player.remove_bookmark(bookmark)
            self._fill(index)

    def action_cursor(self, rows: int) -> None:
        options = self.query_one(OptionList)
        (options.action_cursor_down if rows > 0 else options.action_cursor_up)()

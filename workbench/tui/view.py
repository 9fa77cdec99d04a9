"""What stands behind a number key: one way of looking at the engine, below the status lines that all views share."""

from __future__ import annotations

from abc import abstractmethod

from textual.containers import Container
from textual.widget import Widget

from workbench.tui.session_state import SessionState


class View(Container):
    """Drawn at the screen's pace, and only while it is the one on show."""

    title = ""
    """Its word on the line of views."""

    @abstractmethod
    def show(self, state: SessionState, now: float) -> None:
        """Paint what changed since the last call. ``now`` is the screen's monotonic clock."""

    def forget(self) -> None:
        """Draw at the next ``show``, however lately that was done: a player stands elsewhere, or has stopped."""

    def take_focus(self) -> None:
        """The view came on show: give the keys to the part that reads them."""

    def give_keys(self, part: Widget) -> None:
        """Focus a part at once. ``Widget.focus`` does so a moment later, and a key typed meanwhile would be lost."""
        self.screen.set_focus(part)

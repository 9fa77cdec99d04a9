"""The line of keys at the bottom: what the keys of the moment do, as words on one line.

Textual's own footer is a widget for every key, all made anew at each change of view and each dialog: most of the time
from a key to its paint went there, and it never forgot the old ones.
"""

from __future__ import annotations

from collections.abc import Collection

from textual import events
from textual.screen import Screen

from workbench.cell_text import width_of
from workbench.tui.line_panel import LinePanel, Word


class KeyLine(LinePanel):
    """Shows the bindings of what has the focus, those that want to be shown. A click on a key presses it."""

    DEFAULT_CSS = "KeyLine { dock: bottom; height: 1; background: $surface; }"

    def __init__(self, unlisted: Collection[str] = (), *, id: str | None = None) -> None:
        """``unlisted``: actions that are left out."""
        super().__init__(id=id)
        self._unlisted = unlisted
        self._ends: list[tuple[int, str]] = []
        """(column behind the key's words, key), from left to right."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        self.call_after_refresh(self._changed, self.screen)

    def _changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen:
            self.sync()

    def sync(self) -> None:
        """Show the keys as they are bound now."""
        words: list[Word] = []
        actions = set(self._unlisted)
        self._ends = []
        end = 0
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if not binding.show or binding.action in actions:
                continue
            actions.add(binding.action)
            key, text = f" {self.app.get_key_display(binding)} ", f"{binding.description} "
            words += [(key, "spec" if enabled else "dim"), (text, "dim")]
            end += width_of(key) + width_of(text)
            self._ends.append((end, binding.key))
        self.show([words])

    def on_click(self, event: events.Click) -> None:
        key = next((key for end, key in self._ends if event.x < end), None)
        if key is not None:
            self.app.simulate_key(key)

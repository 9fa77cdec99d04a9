"""The line of keys at the bottom. Textual's own footer, made to forget the keys that it no longer shows."""

from __future__ import annotations

from textual.widgets import Footer


class KeyLine(Footer):
    """The footer is composed anew at every change of view and every dialog, and each of its keys watches one of its
    attributes. Textual drops the watchers of removed keys only when that attribute is set, which nobody does: some
    60 kB a change would stay for good.
    """

    async def recompose(self) -> None:
        await super().recompose()
        self.mutate_reactive(Footer.compact)  # to what it is

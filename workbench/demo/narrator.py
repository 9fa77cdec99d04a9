"""Whom the demonstration tells what goes on: lines in a pipe or terminal, or a screen that draws the steps itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Narrator(Protocol):
    """Called from the demonstration's thread."""

    def phase(self, text: str) -> None:
        """Something else begins."""
        ...

    def progress(self, text: str) -> None:
        """How it goes; of no interest afterwards."""
        ...

    def note(self, text: str) -> None:
        """Something that was found out, and stays worth knowing."""
        ...


class LineNarrator:
    """Says everything, line after line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def phase(self, text: str) -> None:
        self._say("")
        self._say(text)

    def progress(self, text: str) -> None:
        self._say(text)

    def note(self, text: str) -> None:
        self._say(text)

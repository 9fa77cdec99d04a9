"""Stop strings over token borders: nothing of a stop is ever emitted, and nothing else is held back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class StopResult:
    """What one push gave."""

    text: str
    """Safe to emit now."""
    matched: str | None = None
    """The stop string that this push completed; nothing comes after it."""


class StopMatcher:
    """Watches one answer's text for stop strings.

    The stop that is complete first wins, as if the text came letter by letter, so the result does not depend on how
    the text was cut into tokens; of two that are complete at the same letter, the longer one. Feed it token by token
    to know which token completed a stop.
    """

    def __init__(self, stops: Iterable[str] = ()) -> None:
        """Take the stop strings; empty ones are ignored, none at all passes everything through."""
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._held = ""
        self._matched: str | None = None

    @property
    def matched(self) -> str | None:
        return self._matched

    def push(self, text: str) -> StopResult:
        """Add text, get what can be emitted; after a match always empty, with the same stop."""
        if self._matched is not None:
            return StopResult("", self._matched)
        if not self._stops:
            return StopResult(text)
        held = self._held + text
        # (end, start, stop): held text never contains a whole stop, so the first find of each is its first end too.
        found = [(start + len(stop), start, stop) for stop in self._stops if (start := held.find(stop)) >= 0]
        if found:
            _, start, self._matched = min(found)
            self._held = ""
            return StopResult(held[:start], self._matched)
        keep = max(_overlap(held, stop) for stop in self._stops)
        emitted = len(held) - keep
        self._held = held[emitted:]
        return StopResult(held[:emitted])

    def flush(self) -> str:
        """At the end of the answer: the text that was held back and turned out to be no stop."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that a proper beginning of ``stop`` equals."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0

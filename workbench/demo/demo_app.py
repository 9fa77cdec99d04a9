"""The attached screen while a demo drives the engine: it says which part of the demo runs, and when it is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from probes.clock import SystemClock
from probes.discovery import EngineRecord
from workbench.recording.recorder import Recorder
from workbench.tui.app import AttachApp
from workbench.tui.bus_feed import BusFeed
from workbench.tui.bus_steering import BusSteering

STAYS_S = 86_400.0
"""What the demo says stands until it says something else."""


class ScreenNarrator:
    """Hands the demo's words to the screen, and keeps those that are to be read afterwards."""

    def __init__(self, bookmark: Callable[[str], None]) -> None:
        """``bookmark``: told where each part begins."""
        self._bookmark = bookmark
        self.notes: list[str] = []
        """Everything that stays worth knowing, in order."""
        self._news: deque[tuple[str, str]] = deque()

    def phase(self, text: str) -> None:
        self._bookmark(text.partition(";")[0])
        self._news.append((f"demo: {text}", "note"))

    def progress(self, text: str) -> None:
        """The screen shows the steps itself."""

    def note(self, text: str) -> None:
        self.notes.append(text)

    def tell(self, text: str, role: str) -> None:
        """For the screen only."""
        self._news.append((f"demo: {text}", role))

    def take(self) -> list[tuple[str, str]]:
        """(text, role) of what has not been shown yet."""
        return [self._news.popleft() for _ in range(len(self._news))]


class DemoApp(AttachApp):
    """Begins the demo with its first paint, so that not a step of it goes unseen."""

    def __init__(self, record: EngineRecord, narrator: ScreenNarrator, begin: Callable[[], None]) -> None:
        super().__init__(
            record.name,
            BusFeed(record),
            SystemClock(),
            BusSteering(record),
            make_recording=lambda path: Recorder(record, path),
        )
        self._narrator = narrator
        self._begin: Callable[[], None] | None = begin

    def tick(self) -> None:
        """Say what the demo said, then what every screen does."""
        if self._begin is not None:
            begin, self._begin = self._begin, None
            begin()
        for text, role in self._narrator.take():
            self.say(text, role, seconds=STAYS_S)
        super().tick()

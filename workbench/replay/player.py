"""The player: what a person does to a recording. Each action answers with words for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.clock import Clock
from probes.events import HelloEvent
from workbench.replay.bookmarks import Bookmark, BookmarkError, Bookmarks
from workbench.replay.place import find_place
from workbench.replay.player_clock import PlayerClock, speed_text
from workbench.replay.recorded_session import RecordedSession
from workbench.replay.recording_feed import RecordingFeed
from workbench.time_text import offset_text

SWITCHES = frozenset({"switch"})
MARKS = frozenset({"knob", "alert", "gap", "restart", "bookmark"})
SWITCH_NAME = "switch between speculating and plain"
MARK_NAME = "mark (knob change, alert, gap, restart, bookmark)"


@dataclass(frozen=True)
class Place:
    """A mark or a bookmark: somewhere to jump to."""

    t: float
    kind: str
    text: str


class Player:
    """One recording, its clock, its feed, its bookmarks."""

    def __init__(
        self,
        session: RecordedSession,
        path: Path | None = None,
        *,
        speed: float = 1.0,
        real: Clock | None = None,
    ) -> None:
        """``path``: where bookmarks are kept beside; None keeps them for this session."""
        self.session = session
        self.file_name = path.name if path else "recording"
        self.clock = PlayerClock(session.info.start, session.info.end, speed=speed, real=real)
        self.feed = RecordingFeed(session, self.clock)
        self.trouble = ""
        """What is wrong with the file of bookmarks; they then hold for this session only."""
        try:
            self.bookmarks = Bookmarks(path)
        except BookmarkError as error:
            self.bookmarks, self.trouble = Bookmarks(None), str(error)
        self._marks = [Place(mark.t, mark.kind, mark.text) for mark in session.marks()]

    @property
    def engine_name(self) -> str:
        """What the recorded engine called itself; else the file's name."""
        for _, hello in self.session.items(topics=("hello",)):
            if isinstance(hello, HelloEvent):
                return hello.name
        return self.file_name.split(".")[0]

    @property
    def missing(self) -> str:
        """What the recording lacks, in words; empty when it is whole."""
        info = self.session.info
        return info.missing or (f"repaired; left out: {info.repaired}" if info.repaired else "")

    def places(self, kinds: frozenset[str]) -> list[Place]:
        """Marks of these kinds and, with ``bookmark``, the bookmarks; oldest first."""
        places = [place for place in self._marks if place.kind in kinds]
        if "bookmark" in kinds:
            places += [Place(bookmark.t, "bookmark", bookmark.name) for bookmark in self.bookmarks.all]
        return sorted(places, key=lambda place: place.t)

    def toggle(self) -> str:
        """Pause, or play on; at the end play from the start."""
        clock = self.clock
        if clock.is_at_end:
            self.feed.go(clock.start)
            clock.resume()
            return "from the start"
        if clock.is_paused:
            clock.resume()
        else:
            clock.pause()
        return ""

    def change_speed(self, by: int) -> str:
        """So many notches faster or slower."""
        self.clock.change_speed(by)
        return f"speed {speed_text(self.clock.speed)}"

    def step(self, by: int) -> str:
        """Pause, at the next step or the one before."""
        self.clock.pause()
        if by > 0:
            return "" if self.feed.step_forward() else "no step after this one"
        return "" if self.feed.step_back() else "no step before this one"

    def jump(self, kinds: frozenset[str], by: int) -> str:
        """Pause, at the next place of these kinds or the one before."""
        here, places = self.clock.position, self.places(kinds)
        beyond = [place for place in places if (place.t > here if by > 0 else place.t < here)]
        what = SWITCH_NAME if kinds == SWITCHES else MARK_NAME
        if not beyond:
            return f"no {what} {'after' if by > 0 else 'before'} here"
        place = beyond[0] if by > 0 else beyond[-1]
        self.clock.pause()
        self.feed.go(place.t)
        number = places.index(place) + 1
        return f"{place.kind} {number} of {len(places)}: {place.text}"

    def seek(self, words: str) -> str:
        """Go to a place in a person's words; playing goes on there.

        Raises:
            PlaceError: there is no such place.
        """
        place = find_place(words, self.session, here=self.clock.position, bookmarks=self.bookmarks.all)
        self.feed.go(place)
        return f"at {offset_text(place - self.clock.start)}"

    def go(self, t: float) -> None:
        """Go to a time."""
        self.feed.go(t)

    def set_bookmark(self, t: float, name: str) -> str:
        """Keep a place under a name, or under a free one when it is empty."""
        name = name.strip() or self.bookmarks.free_name()
        try:
            self.bookmarks.add(t, name)
        except BookmarkError as error:
            return str(error)
        where = f"bookmark {name!r} at {offset_text(t - self.clock.start)}"
        return f"{where}, for this session only: {self.trouble}" if self.trouble else where

    def remove_bookmark(self, bookmark: Bookmark) -> str:
        """Forget one."""
        try:
            self.bookmarks.remove(bookmark.name)
        except BookmarkError as error:
            return str(error)
        return f"bookmark {bookmark.name!r} removed"


def bookmark_rows(player: Player) -> Sequence[tuple[Bookmark, str]]:
    """Each bookmark with its words for a list."""
    start = player.clock.start
    return [(mark, f"{offset_text(mark.t - start):>9}  {mark.name}") for mark in player.bookmarks.all]

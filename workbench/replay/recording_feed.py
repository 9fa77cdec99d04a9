"""A recording as the source of a screen's events: gives out what happened up to the player clock's time."""

from __future__ import annotations

from collections.abc import Iterator

from probes.subscriber import Received
from workbench.replay.look_back import LookBack
from workbench.replay.player_clock import PlayerClock
from workbench.replay.recorded_session import RecordedSession
from workbench.tui.bus_feed import TOPICS
from workbench.tui.feed import FeedItem, Heard, Rewound

DRAIN = 2000
"""Most items the screen takes at once while playing. What cannot keep up holds the clock back."""
FAR_S = 600.0
"""A step forward over more than this is a jump."""


class RecordingFeed:
    """Follows the clock forward item by item; after ``go`` it tells the state at the new place from the beginning."""

    def __init__(self, session: RecordedSession, clock: PlayerClock) -> None:
        self._session = session
        self._clock = clock
        self._look_back = LookBack(session, TOPICS)
        self._ahead: Iterator[tuple[float, Received]] = iter(())
        self._next: tuple[float, Received] | None = None
        self._is_moved = False

    def start(self) -> None:
        """Stand where the clock stands."""
        if self._clock.position > self._session.info.start:
            self._is_moved = True
        else:
            self._read_on(None)

    def drain(self) -> list[FeedItem]:
        """What happened up to the clock's time since the last call. Blocks as long as reading a window takes."""
        items: list[FeedItem] = []
        if self._is_moved:
            self._is_moved = False
            place = self._clock.position  # not yet run on: what was asked for is shown, if only for a moment
            items.append(Rewound())
            items.extend(Heard(t, item) for t, item in self._look_back.at(place))
            self._read_on(place)
        until, is_paused = self._clock.run(), self._clock.is_paused
        last = until
        count = 0
        while self._next is not None and self._next[0] <= until:
            if count >= DRAIN and not is_paused:
                self._clock.set(last)  # shown is shown: time waits for the rest
                break
            last, item = self._next
            items.append(Heard(last, item))
            count += 1
            self._next = next(self._ahead, None)
        return items

    def close(self) -> None:
        """The session is its opener's to close."""
        self._ahead, self._next = iter(()), None

    # The player's part.

    def go(self, t: float) -> None:
        """Stand at another time from the next drain on."""
        self._clock.set(t)
        self._is_moved = True

    def step_forward(self) -> bool:
        """Stand at the next step; False when there is none."""
        place = self._clock.position
        for t, _ in self._session.items(start=place, topics=("step",)):
            if t > place:
                if t - place > FAR_S:
                    self.go(t)
                else:
                    self._clock.set(t)
                return True
        return False

    def step_back(self) -> bool:
        """Stand at the step before the one that is shown; False when that is the first one."""
        shown = self._session.times_before(self._clock.position, "step", 1)
        earlier = self._look_back.step_before(shown[0]) if shown else None
        if earlier is None:
            return False
        self.go(earlier)
        return True

    def _read_on(self, place: float | None) -> None:
        """Read forward from behind ``place``."""
        topics = (*TOPICS, "gap", "restart", "malformed")
        self._ahead = self._session.items(start=place, topics=topics)
        self._next = next(self._ahead, None)
        while place is not None and self._next is not None and self._next[0] <= place:
            self._next = next(self._ahead, None)

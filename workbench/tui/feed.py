"""Where a screen's events come from: a live bus, a recording, a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from probes.events import Event
from probes.subscriber import Gap, Malformed, Restart


@dataclass(frozen=True)
class Gone:
    """The engine's process ended, or its discovery record was taken away."""

    why: str


@dataclass(frozen=True)
class Rewound:
    """A player moved to another place: forget everything, what follows tells the state there from the beginning."""


@dataclass(frozen=True)
class Skipped:
    """A player left out what lies before the next item."""

    text: str


class Heard(NamedTuple):
    """An item with the time it came at, by the screen's clock, where that is not the time it is drained: a player
    gives out much at once."""

    at: float
    item: Event | Gap | Restart | Malformed | Skipped


FeedItem = Event | Gap | Restart | Malformed | Gone | Rewound | Skipped | Heard


class Feed(Protocol):
    """A source of items. ``drain`` never blocks; ``close`` returns within two seconds whatever the source does."""

    def start(self) -> None:
        """Begin to read. Called once, before the first drain."""
        ...

    def drain(self) -> list[FeedItem]:
        """Everything that came since the last call, oldest first; possibly nothing."""
        ...

    def close(self) -> None:
        """Stop reading and release everything."""
        ...

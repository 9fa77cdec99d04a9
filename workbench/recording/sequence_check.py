"""Are all numbers of all topics there, in order, or is their absence recorded? One boot of the engine after another."""

from __future__ import annotations

from dataclasses import dataclass, field

from probes.events import Event, topic_of
from probes.subscriber import Gap, Malformed, Received, Restart


@dataclass(frozen=True)
class Hole:
    """Numbers of a topic that are neither there nor recorded as missing."""

    boot_id: str
    topic: str
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.topic} events {self.first} to {self.last} of boot {self.boot_id} are missing, and no gap says so"


@dataclass(frozen=True)
class Misplaced:
    """An event, or a gap, that cannot stand where it stands."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Unannounced:
    """Another boot of the engine, without the restart that leads to it."""

    old_boot: str
    new_boot: str

    def __str__(self) -> str:
        return f"boot {self.new_boot} follows boot {self.old_boot} without a restart record"


Oddity = Hole | Misplaced | Unannounced


@dataclass
class SequenceCheck:
    """Looks at the items of a recording one after another."""

    _boot_id: str = ""
    _restarted: bool = False
    _next: dict[str, int] = field(default_factory=dict)  # topic -> number expected next; absent: the first to come

    def see(self, item: Received) -> list[Oddity]:
        """What is wrong at this item, mostly nothing."""
        match item:
            case Restart():
                self._turn_over(item.new_boot)
                return []
            case Gap():
                return [] if item.recovered else self._take(item.topic, item.first, item.last, "a gap")
            case Malformed():
                if item.seq is not None and item.seq == self._expected(item.topic):
                    self._next[item.topic] = item.seq + 1
                return []
            case _:
                return self._event(item)

    def _event(self, event: Event) -> list[Oddity]:
        found: list[Oddity] = []
        if event.boot_id != self._boot_id:
            if self._boot_id:
                found.append(Unannounced(self._boot_id, event.boot_id))
                self._turn_over(event.boot_id)
            self._boot_id = event.boot_id
        if event.seq:  # 0: an answer to a control request, which has no number
            found += self._take(topic_of(event), event.seq, event.seq, "an event")
        return found

    def _take(self, topic: str, first: int, last: int, what: str) -> list[Oddity]:
        expected = self._expected(topic)
        if expected is not None and first < expected:
            return [Misplaced(f"{what} of {topic} has number {first}, after number {expected - 1} has been")]
        self._next[topic] = last + 1
        return [Hole(self._boot_id, topic, expected, first - 1)] if expected is not None and first > expected else []

    def _expected(self, topic: str) -> int | None:
        return self._next.get(topic, 1 if self._restarted else None)

    def _turn_over(self, boot_id: str) -> None:
        self._boot_id, self._restarted = boot_id, True
        self._next.clear()

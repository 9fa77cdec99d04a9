"""A recording that a test holds in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from probes.events import AlertEvent, Event, KnobEvent, StepEvent, topic_of
from probes.subscriber import Gap, Malformed, Received, Restart

_time = itemgetter(0)


def topic(item: Received) -> str:
    """The channel that a recording keeps it on."""
    if isinstance(item, Gap | Restart | Malformed):
        return type(item).__name__.lower()
    return topic_of(item)


@dataclass(frozen=True)
class MemoryMark:
    t: float
    kind: str
    text: str


@dataclass(frozen=True)
class MemoryInfo:
    start: float
    end: float
    counts: dict[str, int]
    missing: str = ""
    repaired: str = ""


@dataclass
class MemorySession:
    """Items with their times, which must not fall."""

    timed: list[tuple[float, Received]]
    missing: str = ""
    reads: Counter[str] = field(default_factory=Counter)
    """Topic -> items given out."""
    most_times: int = 0
    """Most times asked for at once."""

    def __post_init__(self) -> None:
        self.by_topic: dict[str, list[tuple[float, Received]]] = {}
        for pair in self.timed:
            self.by_topic.setdefault(topic(pair[1]), []).append(pair)
        times = [t for t, _ in self.timed] or [0.0]
        self.info = MemoryInfo(
            times[0], times[-1], {name: len(all_) for name, all_ in self.by_topic.items()}, self.missing
        )

    def items(
        self, start: float | None = None, end: float | None = None, topics: Collection[str] | None = None
    ) -> Iterator[tuple[float, Received]]:
        first = 0 if start is None else bisect_left(self.timed, start, key=_time)
        for t, item in self.timed[first:] if topics is None or len(topics) > 1 else self._of(topics, start):
            if end is not None and t >= end:
                return
            if topics is None or topic(item) in topics:
                self.reads[topic(item)] += 1
                yield t, item

    def _of(self, topics: Collection[str], start: float | None) -> list[tuple[float, Received]]:
        (name,) = topics
        found = self.by_topic.get(name, [])
        return found if start is None else found[bisect_left(found, start, key=_time) :]

    def before(self, t: float, topic: str, count: int) -> list[tuple[float, Received]]:
        found = self.by_topic.get(topic, [])
        last = bisect_right(found, t, key=_time)
        self.reads[topic] += min(count, last)
        return found[max(0, last - count) : last]

    def times_before(self, t: float, topic: str, count: int) -> list[float]:
        self.most_times = max(self.most_times, count)
        found = self.by_topic.get(topic, [])
        last = bisect_right(found, t, key=_time)
        return [at for at, _ in found[max(0, last - count) : last]]

    def marks(self) -> list[MemoryMark]:
        marks: list[MemoryMark] = []
        mode = ""
        for t, item in self.timed:
            match item:
                case StepEvent(mode="spec" | "plain"):
                    if mode and item.mode != mode:
                        marks.append(MemoryMark(t, "switch", f"{mode} → {item.mode} at step {item.step}"))
                    mode = item.mode
                case KnobEvent():
                    marks.append(MemoryMark(t, "knob", f"{item.old} → {item.new}"))
                case AlertEvent():
                    marks.append(MemoryMark(t, "alert", item.message))
                case Gap() | Restart():
                    marks.append(MemoryMark(t, topic(item), "a loss" if isinstance(item, Gap) else "a restart"))
        return marks


def timed_at_their_own(items: list[Event]) -> list[tuple[float, Received]]:
    """Events at the times they say."""
    return [(event.t, event) for event in items]

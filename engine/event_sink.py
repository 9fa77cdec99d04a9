"""Where the engine's events go: a bus, or nowhere."""

from __future__ import annotations

import time
from typing import Protocol

from probes.events import Event


class EventSink(Protocol):
    """What the engine's loop needs of a bus. No call may block."""

    def publish(self, event: Event) -> None: ...

    def wants(self, topic: str) -> bool: ...

    def stage(self, name: str, step: int) -> None: ...

    def t(self) -> float: ...


class NoSink:
    """An engine nobody watches."""

    def publish(self, event: Event) -> None:
        pass

    def wants(self, topic: str) -> bool:
        return False

    def stage(self, name: str, step: int) -> None:
        pass

    def t(self) -> float:
        return time.time()


class MemorySink:
    """Keeps events in a list: for scripts and tests."""

    def __init__(self, *, rows: bool = False) -> None:
        self.events: list[Event] = []
        self._rows = rows

    def publish(self, event: Event) -> None:
        self.events.append(event)

    def wants(self, topic: str) -> bool:
        return topic != "rows" or self._rows

    def stage(self, name: str, step: int) -> None:
        pass

    def t(self) -> float:
        return time.time()

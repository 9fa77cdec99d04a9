"""An event sink that can be pointed elsewhere between two runs: one engine, watched, kept in memory, or alone."""

from __future__ import annotations

from engine.event_sink import EventSink, MemorySink
from probes.events import Event


class SwitchedSink:
    """Hands everything on to ``target``."""

    def __init__(self) -> None:
        self._memory = MemorySink()
        self.target: EventSink = self._memory

    @property
    def kept(self) -> list[Event]:
        """What came while it was kept in memory."""
        return self._memory.events

    def keep(self) -> None:
        """Keep events in memory from now on."""
        self.target = self._memory

    def publish(self, event: Event) -> None:
        self.target.publish(event)

    def wants(self, topic: str) -> bool:
        return self.target.wants(topic)

    def stage(self, name: str, step: int) -> None:
        self.target.stage(name, step)

    def t(self) -> float:
        return self.target.t()

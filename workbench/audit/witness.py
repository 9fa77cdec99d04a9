"""Keeps everything that the bus says while an audit runs."""

from __future__ import annotations

from types import TracebackType

from probes.discovery import EngineRecord
from probes.events import RequestEvent, StepEvent, topic_of
from probes.subscriber import Gap, Malformed, Received, Restart
from workbench.bus_follower import BusFollower

TOPICS = ("step", "rows", "request", "knob", "alert", "drop")
POLL_S = 0.1


class Witness:
    """Keeps what comes from its making to its exit."""

    def __init__(self, record: EngineRecord, who: str) -> None:
        """Connects at once.

        Raises:
            ProbeError: the engine does not answer.
        """
        self._bus = BusFollower(record, TOPICS, who, POLL_S)
        self.hello = self._bus.hello
        self.items: list[Received] = []
        self.newest_step = self.hello.step
        self.newest: dict[str, int] = {}
        """Topic -> number of its newest event."""
        self.arrived = 0
        self.ended = 0
        self._bus.start(self._take_all)

    @property
    def is_joined(self) -> bool:
        """The engine knows of all subscriptions: it makes rows from now on."""
        return self._bus.is_joined

    def close(self) -> None:
        """Stop following."""
        self._bus.close()

    def __enter__(self) -> Witness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take_all(self, items: list[Received]) -> None:
        for item in items:
            self._take(item)

    def _take(self, item: Received) -> None:
        self.items.append(item)
        if isinstance(item, Gap | Restart | Malformed):
            return
        self.newest[topic_of(item)] = item.seq
        match item:
            case StepEvent():
                self.newest_step = item.step
            case RequestEvent():
                self.arrived += item.phase == "arrived"
                self.ended += item.phase in ("finished", "aborted")
            case _:
                pass

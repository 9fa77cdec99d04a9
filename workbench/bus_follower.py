"""Follows an engine's bus in a thread of its own, and hands on what came in lumps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from probes.discovery import EngineRecord
from probes.subscriber import Received, Subscriber


class BusFollower:
    """Connected from its making, follows from ``start`` to ``close``."""

    def __init__(self, record: EngineRecord, topics: Iterable[str], who: str, poll_s: float) -> None:
        """``poll_s``: between two looks; being woken for each event would cost more than the rest of the program.

        Raises:
            ProbeError: the engine does not answer.
        """
        self._subscriber = Subscriber(record, topics, who=who)
        self.hello = self._subscriber.hello
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_joined(self) -> bool:
        """The engine knows of all subscriptions: it makes rows from now on."""
        return self._subscriber.is_joined

    def start(self, take: Callable[[list[Received]], None]) -> None:
        """Call ``take`` with what came, from the follower's thread, until ``close``."""

        def follow() -> None:
            while not self._stop.wait(self._poll_s):
                take(self._subscriber.poll(0))

        self._thread = threading.Thread(target=follow, name="bus-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._subscriber.close()

"""The live feed: a thread reads the bus, the screen takes what came at its own pace."""

from __future__ import annotations

import threading
from collections import deque

from probes.discovery import EngineRecord
from probes.errors import ProbeError
from probes.subscriber import Subscriber
from workbench.tui.feed import FeedItem, Gone
from workbench.tui.opening import opening

TOPICS = ("step", "knob", "alert", "drop", "heartbeat", "hello")
POLL_S = 0.2
RETRY_S = 0.5
CONNECT_S = 2.0
LINGER_S = 0.02
"""After a read: what comes meanwhile is read at once, for a third of the cost of waking up for each message."""
BACKLOG = 20_000
"""Items that wait for the screen. Beyond it the thread stops reading: the bus then loses events, and says how many."""
DRAIN = 5_000
"""Most items the screen takes at once, so that a flood delays a key press by some 50 ms at most."""
JOIN_S = 1.0


class BusFeed:
    """Reads one engine's bus. Connects by itself, and again after the engine was away."""

    def __init__(self, record: EngineRecord) -> None:
        self._record = record
        self._items: deque[FeedItem] = deque()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        # A daemon: a thread that hangs in a dying connection must not keep the process.
        self._thread = threading.Thread(target=self._run, name="bus-feed", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def drain(self) -> list[FeedItem]:
        """What came, at most ``DRAIN`` items.

        Raises:
            Exception: whatever ended the reading thread; a bug, not a state of the engine.
        """
        if self._error is not None:
            raise self._error
        return [self._items.popleft() for _ in range(min(len(self._items), DRAIN))]

    def close(self) -> None:
        """Stop reading; waits a second at most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._follow()
        except Exception as error:
            self._error = error

    def _follow(self) -> None:
        """Connect, then read until told to stop. A first connection that fails is told as ``Gone`` and tried again."""
        try:
            subscriber = Subscriber(self._record, TOPICS, who=f"attach {self._record.name}", timeout=CONNECT_S)
        except ProbeError as error:
            self._items.append(Gone(str(error) if self._record.is_live else self._ended()))
            self._stop.wait(RETRY_S)
            return
        with subscriber:
            self._items.extend(opening(subscriber))
            while not self._stop.is_set():
                if len(self._items) >= BACKLOG:
                    self._stop.wait(POLL_S)
                    continue
                received = subscriber.poll(POLL_S)
                self._items.extend(received)
                if received:
                    self._stop.wait(LINGER_S)
                if not received and subscriber.is_stale and not self._record.is_live:
                    self._items.append(Gone(self._ended()))
                    # It may come back under the same name and endpoints; the subscriber reconnects by itself.
                    self._stop.wait(RETRY_S)

    def _ended(self) -> str:
        return f"process {self._record.pid} has ended"

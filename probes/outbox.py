"""Between the engine's loop and the publisher thread: a bounded queue that numbers and counts.

Appending costs the engine microseconds (1.5 in a tight loop, about 12 with cold caches) and never waits for a socket;
some tens when the publisher thread sleeps and has to be woken, which it need not while events keep coming. The lock is
held for a few instructions only.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from probes.events import Event, topic_of

BULKY = frozenset({"step", "rows", "request"})
"""Topics that may fill the queue; the rarer ones have as much room again beyond it."""


@dataclass
class Drops:
    """Drops of one topic that nobody has been told about: ``count`` from ``first_seq`` on."""

    first_seq: int
    count: int


class Outbox:
    """Numbers events per topic from 1, and holds up to ``limit`` of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[tuple[str, int, Event]] = deque()
        self._lock = threading.Lock()
        self._seqs: dict[str, int] = {}
        self._drops: dict[str, Drops] = {}
        self._sleeping = False
        self._woken = False
        self._closed = False
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.dropped = 0
        """Events dropped since boot, over all topics."""

    @property
    def wake_fd(self) -> int:
        """Readable when the sleeping consumer has something to do."""
        return self._read_fd

    def __len__(self) -> int:
        return len(self._queue)

    def append(self, event: Event) -> int:
        """Queue an event and return its sequence number; when the queue is full the event is counted and gone."""
        topic = topic_of(event)
        with self._lock:
            if self._closed:
                return 0
            seq = self._seqs.get(topic, 0) + 1
            self._seqs[topic] = seq
            if len(self._queue) >= (self._limit if topic in BULKY else 2 * self._limit):
                self._count_drop(topic, seq)
                return seq
            self._queue.append((topic, seq, event))
            if self._sleeping:
                self._wake()
        return seq

    def wake(self) -> None:
        """Wake the consumer for something that is not in the queue."""
        with self._lock:
            self._woken = True
            if self._sleeping and not self._closed:
                self._wake()

    def last_seqs(self) -> dict[str, int]:
        """Topic -> newest number given out; all of them are sent or queued, or dropped."""
        with self._lock:
            return dict(self._seqs)

    def take(self, most: int) -> list[tuple[str, int, Event]]:
        """Up to ``most`` queued events, oldest first."""
        with self._lock:
            return [self._queue.popleft() for _ in range(min(most, len(self._queue)))]

    def spoil(self, topic: str, seq: int) -> None:
        """Count an event that was taken and could not be sent."""
        with self._lock:
            self._count_drop(topic, seq)

    def take_drops(self) -> dict[str, Drops]:
        """Topic -> drops since the last call."""
        with self._lock:
            drops, self._drops = self._drops, {}
        return drops

    def sleep(self) -> bool:
        """The consumer is about to wait on ``wake_fd``; False when it should not, because there is work."""
        with self._lock:
            self._sleeping = not self._queue and not self._woken
            self._woken = False
            return self._sleeping

    def awake(self) -> None:
        """The consumer has come back from waiting."""
        with self._lock:
            self._sleeping = False
            if not self._closed:
                with suppress(BlockingIOError):
                    os.read(self._read_fd, 4096)

    def close(self) -> None:
        """Drop what is queued and give the descriptors back; appending is a no-op from now on."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.clear()
                os.close(self._read_fd)
                os.close(self._write_fd)

    def _count_drop(self, topic: str, seq: int) -> None:
        self.dropped += 1
        self._drops.setdefault(topic, Drops(seq, 0)).count += 1

    def _wake(self) -> None:
        self._sleeping = False
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._write_fd, b"!")

"""The newest messages of one topic, kept to be sent again. Bounded by count and by bytes."""

from __future__ import annotations

from collections import deque


class ReplayRing:
    """Encoded payloads by sequence number, which need not be dense: events dropped before sending leave holes."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._items: deque[tuple[int, bytes]] = deque()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def size(self) -> int:
        """Bytes of payload held."""
        return self._bytes

    @property
    def first(self) -> int | None:
        """Oldest sequence number held."""
        return self._items[0][0] if self._items else None

    def append(self, seq: int, payload: bytes) -> None:
        """Add the newest message; the oldest go until both bounds hold."""
        self._items.append((seq, payload))
        self._bytes += len(payload)
        while len(self._items) > self._max_events or self._bytes > self._max_bytes:
            self._bytes -= len(self._items.popleft()[1])

    def read(self, first: int, last: int, max_events: int, max_bytes: int) -> tuple[list[tuple[int, bytes]], int]:
        """Messages from ``first`` to ``last``, at least one if there is any, within the bounds; and where to read on.

        The second value is above ``last`` when nothing of the range is left.
        """
        found: list[tuple[int, bytes]] = []
        total = 0
        for seq, payload in self._items:
            if seq < first:
                continue
            if seq > last:
                break
            if found and (len(found) >= max_events or total + len(payload) > max_bytes):
                return found, seq
            found.append((seq, payload))
            total += len(payload)
        return found, last + 1

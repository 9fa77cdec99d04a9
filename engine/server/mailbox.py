"""Where the engine's messages for one HTTP request wait for its handler."""

from __future__ import annotations

import asyncio
from collections import deque

from engine.ipc import Failed, Output


class Mailbox:
    """Messages of the sequences of one HTTP request, in order. The engine's side never waits.

    A reader that is slow, or stopped reading, costs at most one message a token: ``max_tokens`` bounds what piles up,
    and the requests in flight are bounded by the client's capacity.
    """

    def __init__(self) -> None:
        self._pending: deque[tuple[int, Output | Failed]] = deque()
        self._arrived = asyncio.Event()

    def put(self, index: int, message: Output | Failed) -> None:
        """Add a message of sequence ``index``."""
        self._pending.append((index, message))
        self._arrived.set()

    async def get(self) -> tuple[int, Output | Failed]:
        """The oldest message, and the sequence it belongs to."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        return self._pending.popleft()

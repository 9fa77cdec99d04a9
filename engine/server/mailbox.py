"""Where the engine's messages for one HTTP request wait for its handler."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from engine.ipc import Failed, Output

PENDING_LIMIT = 64
"""Messages kept apart; beyond it a slow reader's outputs are merged, so memory grows with tokens, not with steps."""


class Mailbox:
    """Messages of the sequences of one HTTP request, in order. The engine's side never waits."""

    def __init__(self) -> None:
        self._pending: deque[tuple[int, Output | Failed]] = deque()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pending)

    def put(self, index: int, message: Output | Failed) -> None:
        """Add a message of sequence ``index``; a full mailbox joins an output to the sequence's previous one."""
        if len(self._pending) >= PENDING_LIMIT and isinstance(message, Output):
            for place in range(len(self._pending) - 1, -1, -1):
                owner, earlier = self._pending[place]
                if owner == index and isinstance(earlier, Output):
                    self._pending[place] = (index, merged(earlier, message))
                    return
        self._pending.append((index, message))
        self._arrived.set()

    async def get(self) -> tuple[int, Output | Failed]:
        """The oldest message, and the sequence it belongs to."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        return self._pending.popleft()


def merged(first: Output, second: Output) -> Output:
    """Two outputs of one request as one: pieces joined, counters and the end from the later one."""
    texts = [part.text for part in (first, second) if part.text is not None]
    logprobs = [*(first.logprobs or []), *(second.logprobs or [])]
    return msgspec.structs.replace(
        second,
        token_ids=first.token_ids + second.token_ids,
        text="".join(texts) if texts else None,
        logprobs=logprobs or None,
    )

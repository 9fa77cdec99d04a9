"""How requests are sent: by clients that wait for their answers (closed loop), or at times that do not care (open)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from workbench.bench.answer import Answer

PAUSE_S = 0.1
"""A client whose request failed waits this long, or as long as the server asks, before its next one."""
LONGEST_PAUSE_S = 1.0
FAILURES_IN_A_ROW = 20
"""So many failures without an answer between them, or five a client, end the run: nobody is there any more."""

Send = Callable[[int], Awaitable[Answer]]
"""Request number -> its answer; never raises for a failed request."""


@dataclass
class Budget:
    """When the last request goes out: after so many, or after so many seconds. Answers on their way are waited for."""

    requests: int | None = None
    duration: float | None = None
    _taken: int = 0
    _began: float | None = None

    def take(self) -> int | None:
        """Number of the next request; None when there is none."""
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if self.requests is not None and self._taken >= self.requests:
            return None
        if self.duration is not None and now - self._began >= self.duration:
            return None
        self._taken += 1
        return self._taken - 1


@dataclass
class Load:
    """One run: filled while it goes on, so that an interrupted one has what it has."""

    send: Send
    answers: list[Answer] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    patience: int = FAILURES_IN_A_ROW
    _failed_in_a_row: int = 0

    @property
    def gave_up(self) -> bool:
        """Too many requests in a row have failed; no more are sent."""
        return self._failed_in_a_row >= self.patience

    async def one(self, index: int) -> Answer:
        """Send a request and keep its answer."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = await self.send(index)
        finally:
            self.in_flight -= 1
        self.answers.append(answer)
        self._failed_in_a_row = 0 if answer.error is None else self._failed_in_a_row + 1
        return answer

    async def closed(self, clients: int, budget: Budget) -> None:
        """``clients`` at a time, each with its next request when it has the answer to its last."""
        self.patience = max(FAILURES_IN_A_ROW, 5 * clients)
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client(budget))

    async def open(self, rate: float, budget: Budget, seed: int) -> None:
        """``rate`` requests a second on average, at Poisson's times: the same ones for the same seed."""
        rng = random.Random(seed)
        due = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while True:
                due += rng.expovariate(rate)
                await asyncio.sleep(due - time.monotonic())
                if self.gave_up or (index := budget.take()) is None:
                    return
                group.create_task(self.one(index))

    async def _client(self, budget: Budget) -> None:
        while not self.gave_up and (index := budget.take()) is not None:
            answer = await self.one(index)
            if answer.error is not None:
                await asyncio.sleep(min(LONGEST_PAUSE_S, max(PAUSE_S, answer.error.retry_after)))

"""Closed-loop clients whose number goes up and down: each sends its next request when it has the answer to the last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Generic, TypeVar

P = TypeVar("P")  # a prompt, whatever the sender takes


def levels_through(threshold: int, most: int) -> list[int]:
    """Numbers of clients: doubling from 1 until well above the threshold (at least 8), and down again.

    ``most``: as many as the engine runs at once; more would only wait.
    """
    up = [1]
    while up[-1] < 8 or up[-1] <= threshold:
        up.append(up[-1] * 2)
    up = sorted({min(level, most) for level in up})
    return up + up[-2::-1]


class ClientRamp(Generic[P]):
    """Runs through the levels by itself once started.

    A level ends when its clients have had as many answers as there are clients. Surplus clients leave after the answer
    they wait for, so the number of requests in flight changes while others are in mid-sentence.
    """

    def __init__(self, send: Callable[[P], list[int]], prompts: Sequence[P], levels: Sequence[int]) -> None:
        """Nothing is sent yet. ``send``: one request; the tokens of its answer."""
        self._send = send
        self._prompts = cycle(prompts)
        self._levels = list(levels)
        self._level = -1
        self._answers = 0  # at this level, by clients that stay
        self._lock = threading.Lock()
        self.clients = 0
        """Clients that wait for an answer now."""
        self.outputs: list[tuple[P, list[int]]] = []
        self.failure: Exception | None = None

    @property
    def target(self) -> int:
        """Clients that the present level asks for; 0 after the last one."""
        return self._levels[self._level] if 0 <= self._level < len(self._levels) else 0

    @property
    def is_running(self) -> bool:
        with self._lock:
            return self.clients > 0

    def start(self) -> None:
        """Begin with the first level."""
        with self._lock:
            self._next_level()

    def stop(self) -> None:
        """No client sends another request; those in flight get their answers."""
        with self._lock:
            self._level = len(self._levels)

    def _next_level(self) -> None:
        self._level += 1
        self._answers = 0
        for _ in range(self.target - self.clients):
            self.clients += 1
            # Daemons: an interrupted demo does not wait for answers.
            threading.Thread(target=self._client, daemon=True).start()

    def _client(self) -> None:
        going_on = True
        while going_on:
            with self._lock:
                prompt = next(self._prompts)
            try:
                tokens = self._send(prompt)
            except Exception as error:
                with self._lock:
                    self.failure = self.failure or error
                    self._level = len(self._levels)
                    self.clients -= 1
                return
            with self._lock:
                self.outputs.append((prompt, tokens))
                going_on = self._goes_on()
                self.clients -= not going_on

    def _goes_on(self) -> bool:
        """After an answer: count it, move on to the next level if it was the last one of this, leave if surplus."""
        if self.clients > self.target:
            return False
        self._answers += 1
        if self._answers >= self.target:
            self._next_level()
        return self.clients <= self.target

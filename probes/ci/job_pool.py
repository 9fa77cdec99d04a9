"""A few jobs at a time in daemon threads, while the main thread watches the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class JobPool(Generic[T]):
    """Starts at once. Unlike an executor it never holds up the end of the program."""

    def __init__(self, jobs: Sequence[Callable[[], T]], workers: int) -> None:
        self._jobs = list(enumerate(jobs))
        self._jobs.reverse()
        self._done: dict[int, T] = {}
        self._lock = threading.Lock()
        self.failure: Exception | None = None
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(min(workers, len(jobs)))]
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    @property
    def results(self) -> list[T]:
        """Of the jobs that are done, in the order of the jobs."""
        return [self._done[index] for index in sorted(self._done)]

    def stop(self) -> None:
        """Begin no further job; those under way go on."""
        with self._lock:
            self._jobs.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs or self.failure is not None:
                    return
                index, job = self._jobs.pop()
            try:
                result = job()
            except Exception as error:
                with self._lock:
                    self.failure = self.failure or error
                return
            with self._lock:
                self._done[index] = result

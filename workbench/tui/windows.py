"""Sums over the last seconds, in the engine's own time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass
class RateWindow:
    """Tokens per second over the last ``seconds``."""

    seconds: float = 5.0
    _samples: deque[tuple[float, int]] = field(default_factory=deque)
    _sum: int = 0
    _since: float | None = None

    def add(self, t: float, count: int) -> None:
        if self._since is None:
            self._since = t
        self._samples.append((t, count))
        self._sum += count
        self._trim(t)

    def rate(self, now: float) -> float | None:
        """Counts per second up to ``now``; None before anything was seen for a tenth of a second."""
        self._trim(now)
        if self._since is None:
            return None
        span = min(self.seconds, now - self._since)
        return self._sum / span if span >= 0.1 else None

    def clear(self) -> None:
        self._samples.clear()
        self._sum, self._since = 0, None

    def _trim(self, now: float) -> None:
        while self._samples and self._samples[0][0] <= now - self.seconds:
            self._sum -= self._samples.popleft()[1]


@dataclass(frozen=True)
class Acceptance:
    """Accept length as a panel shows it: ``value`` of the window, or None and then the last value and its age."""

    value: float | None
    last: float | None
    age: float
    """Seconds since the newest verify; meaningless while ``last`` is None."""


@dataclass
class AcceptWindow:
    """Accept length over the last ``seconds``: 1 + correct / verified as a ratio of sums, the bonus token included.

    Nothing verified in the window is "no data", never 0; the last value stays, with its age.
    """

    seconds: float = 10.0
    _samples: deque[tuple[float, int, int]] = field(default_factory=deque)
    _correct: int = 0
    _verified: int = 0
    _last: float | None = None
    _last_t: float = 0.0
    _epoch: int = 0  # of the knobs in force
    _sampled: int = 0  # of the knobs that the samples were made under

    def add(self, t: float, correct: int, verified: int, epoch: int = 0) -> None:
        """A step under the knobs of ``epoch``. One that flew when they changed comes in behind their end: it still
        counts with its own, whose last value it makes."""
        if verified <= 0:
            return
        if epoch != self._sampled:
            self._samples.clear()
            self._correct = self._verified = 0
            self._sampled = epoch
        self._samples.append((t, correct, verified))
        self._correct += correct
        self._verified += verified
        self._trim(t)
        self._last, self._last_t = 1 + self._correct / self._verified, t

    def read(self, now: float) -> Acceptance:
        self._trim(now)
        is_known = self._verified and self._sampled == self._epoch
        value = 1 + self._correct / self._verified if is_known else None
        return Acceptance(value, self._last, max(0.0, now - self._last_t))

    def new_epoch(self, epoch: int) -> None:
        """Other knobs, other statistics: the window starts again; the last value stays, as the last value."""
        self._epoch = epoch

    def _trim(self, now: float) -> None:
        while self._samples and self._samples[0][0] <= now - self.seconds:
            _, correct, verified = self._samples.popleft()
            self._correct -= correct
            self._verified -= verified

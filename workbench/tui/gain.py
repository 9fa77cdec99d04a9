"""Whether speculation pays at a load: tokens a second of speculating steps over those of plain ones, measured. Pure.

A step counts when it shows nothing but its kind: decode only, all rows equally wide, nothing ended in it, and the step
before was of the same kind with as many requests, so that neither a start, an end nor the switch itself is in its time.
Its time is the *next* step's ``round_us`` (start of a step to the start of the next); a step before idling has none.
Under overlap that round lasts as long as the device took for the step *before* it, so that one must count as well.

Steps are kept by the exact number of decode requests, and speculating ones also by the shape of their tree: another
shape is another thing to compare. The threshold changes neither, so its changes keep what was measured.

The speed of a side is the mean of emitted tokens over the median round: a step's tokens are small whole numbers, whose
median would jump, while a few disturbed rounds should not count. Its spread is a bootstrap of short runs of steps, as
neighbours resemble each other; the same resamples come for the same steps.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from statistics import median

from probes.events import StepEvent

FEWEST = 20
"""Steps a side needs; fewer say nothing."""
KEPT = 128
"""Newest steps kept of a side."""
LOADS = 256
"""Sides kept; of more, the one that was measured longest ago goes."""
SPAN_S = 600.0
"""Steps older than the side's newest by more than this are not of the same situation any more."""
RESAMPLES = 200
RUN = 4
"""Neighbouring steps that are drawn together."""
PATIENCE_S = 2.0
"""Engine time for which an interval stands before it is worked out again; the other loads' stand longer."""
NOW_S = 2.0
NOW_STEPS = 64

Taken = tuple[int, int, float]
"""Of one step: emitted tokens, microseconds, engine time."""
Shape = tuple[int, int, int]
"""steps, topk, draft_tokens."""
Key = tuple[int, Shape | None]
"""Decode requests, and the tree's shape; None for plain steps."""


class Verdict(Enum):
    """What the interval says."""

    WINNING = "winning"
    LOSING = "losing"
    CLOSE = "too close to tell"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Side:
    """One way to decode at one load."""

    steps: int
    tok_s: float
    """All requests together."""
    t: float
    """Engine time of its newest step."""


@dataclass(frozen=True)
class Gain:
    """On over off at a load. ``ratio`` and its 90% interval are None while a side is missing."""

    requests: int
    on: Side | None = None
    off: Side | None = None
    on_steps: int = 0
    """Steps seen so far, also while they are too few for a side."""
    off_steps: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pooled: tuple[int, int] | None = None
    """Lowest and highest number of requests that were taken together; None when only ``requests`` itself."""

    @property
    def verdict(self) -> Verdict:
        if self.low is None or self.high is None:
            return Verdict.UNKNOWN
        if self.low > 1.0:
            return Verdict.WINNING
        return Verdict.LOSING if self.high < 1.0 else Verdict.CLOSE

    def age(self, now: float) -> float | None:
        """Seconds since the side that was measured longer ago; None while one is missing."""
        return max(0.0, now - min(self.on.t, self.off.t)) if self.on and self.off else None


@dataclass
class Samples:
    """The newest steps of one kind at one load."""

    taken: deque[Taken] = field(default_factory=lambda: deque(maxlen=KEPT))
    version: int = 0

    def add(self, emitted: int, us: int, t: float) -> None:
        self.taken.append((emitted, us, t))
        self.version += 1
        while self.taken[0][2] < t - SPAN_S:
            self.taken.popleft()


def speed(taken: Sequence[Taken]) -> float:
    """Tokens a second: mean tokens a step over the median time of a step."""
    return sum(emitted for emitted, _, _ in taken) / len(taken) / median(us for _, us, _ in taken) * 1e6


def speeds(taken: Sequence[Taken], seed: int) -> list[float]:
    """``RESAMPLES`` speeds of resampled steps, in runs of ``RUN`` neighbours, unsorted."""
    draw = random.Random(seed)
    runs = [taken[start : start + RUN] for start in range(max(1, len(taken) - RUN + 1))]
    sums = [(sum(emitted for emitted, _, _ in run), [us for _, us, _ in run]) for run in runs]
    count = -(-len(taken) // RUN)
    found = []
    for _ in range(RESAMPLES):
        drawn = draw.choices(sums, k=count)
        times = list(chain.from_iterable(us for _, us in drawn))
        found.append(sum(emitted for emitted, _ in drawn) / len(times) / median(times) * 1e6)
    return found


def compare(requests: int, on: Sequence[Taken], off: Sequence[Taken]) -> Gain:
    """The gain of two sides that both have enough steps: ratio of speeds with a bootstrap 90% interval."""
    ratios = sorted(a / b for a, b in zip(speeds(on, 1), speeds(off, 2), strict=True))
    edge = RESAMPLES // 20
    return replace(count(requests, on, off), ratio=speed(on) / speed(off), low=ratios[edge], high=ratios[-1 - edge])


def count(requests: int, on: Sequence[Taken], off: Sequence[Taken]) -> Gain:
    """Both sides as far as they were measured, not yet compared."""
    sides = [Side(len(taken), speed(taken), taken[-1][2]) if len(taken) >= FEWEST else None for taken in (on, off)]
    return Gain(requests, sides[0], sides[1], len(on), len(off))


@dataclass
class Known:
    """A gain as it was worked out, and from what."""

    gain: Gain
    versions: tuple[int, ...]
    t: float


class GainMeter:
    """Takes every step; answers for the load of now and for all loads."""

    def __init__(self) -> None:
        self._samples: dict[Key, Samples] = {}
        self._before: StepEvent | None = None  # the step before the pending one
        self._pending: StepEvent | None = None  # its time comes with the next step
        self._was_steady = False  # the step before the pending one counted too
        self._recent: deque[tuple[float, int]] = deque(maxlen=NOW_STEPS)  # (t, requests) of decode steps
        self._known: dict[tuple[int, int, Shape], Known] = {}  # lowest and highest load taken together

    def add(self, step: StepEvent) -> None:
        """Take a step in, in order."""
        pending = self._pending
        if pending is not None and step.step == pending.step + 1 and step.round_us > 0:
            steady = self._before is not None and is_steady(self._before, pending)
            if steady and (self._was_steady or pending.scheduler != "overlap"):
                self._keep(pending, step.round_us)
            self._before, self._was_steady = pending, steady
        else:
            self._before, self._was_steady = None, False
        self._pending = step
        if step.requests and step.mode != "prefill":
            self._recent.append((step.t, step.requests))

    def load(self, now: float) -> int | None:
        """Decode requests of most steps in the last two seconds; None when nothing decoded in them."""
        counts = Counter(requests for t, requests in self._recent if now - NOW_S <= t)
        return counts.most_common(1)[0][0] if counts else None

    @property
    def last_load(self) -> int | None:
        """Decode requests of the newest decode step, however old."""
        return self._recent[-1][1] if self._recent else None

    def at(self, requests: int, shape: Shape, now: float) -> Gain:
        """The gain at exactly so many requests; where that is unknown, pooled with neighbours, and it says so."""
        exact = self._exact(requests, shape, now, PATIENCE_S)
        if exact.ratio is not None:
            return exact
        return self._pooled(requests, shape, now) or exact

    def by_load(self, shape: Shape, now: float) -> list[Gain]:
        """All loads at which at least one side was measured, by number of requests, nothing pooled."""
        loads = sorted({requests for requests, of in self._samples if of in (shape, None)})
        gains = (self._exact(requests, shape, now, 3 * PATIENCE_S) for requests in loads)
        return [gain for gain in gains if gain.on or gain.off]

    def _keep(self, step: StepEvent, us: int) -> None:
        info = step.spec_info
        if step.mode == "spec" and info is None:
            return  # an engine that does not say with which shape
        shape = (info.steps, info.topk, info.draft_tokens) if step.mode == "spec" and info else None
        key = (step.requests, shape)
        samples = self._samples.pop(key, None) or Samples()
        samples.add(step.emitted, us, step.t)
        self._samples[key] = samples  # at the end: the dict is in order of last use
        if len(self._samples) > LOADS:
            del self._samples[next(iter(self._samples))]

    def _exact(self, requests: int, shape: Shape, now: float, patience: float) -> Gain:
        on, off = self._samples.get((requests, shape)), self._samples.get((requests, None))
        versions = tuple(samples.version if samples else 0 for samples in (on, off))
        key = (requests, requests, shape)
        known = self._known.get(key)
        if known and (known.versions == versions or (known.gain.ratio and abs(now - known.t) < patience)):
            return known.gain
        taken = [list(samples.taken) if samples else [] for samples in (on, off)]
        enough = all(len(steps) >= FEWEST for steps in taken)
        return self._learn(key, (compare if enough else count)(requests, *taken), versions, now)

    def _pooled(self, requests: int, shape: Shape, now: float) -> Gain | None:
        """Neighbours up to an eighth away. Each gives both sides equally many steps, so that both have the same mix of
        loads: with different mixes the ratio would be of loads, not of speculation."""
        reach = max(1, requests // 8)
        both = {
            load: (self._samples[load, shape], self._samples[load, None])
            for load in range(max(1, requests - reach), requests + reach + 1)
            if (load, shape) in self._samples and (load, None) in self._samples
        }
        shares = {load: min(len(on.taken), len(off.taken)) for load, (on, off) in both.items()}
        if sum(shares.values()) < FEWEST:
            return None
        key = (min(both), max(both), shape)
        versions = tuple(samples.version for pair in both.values() for samples in pair)
        known = self._known.get(key)
        if known and (known.versions == versions or abs(now - known.t) < PATIENCE_S):
            return replace(known.gain, requests=requests)
        on, off = (
            sorted((step for load, pair in both.items() for step in list(pair[side].taken)[-shares[load] :]), key=_time)
            for side in (0, 1)
        )
        gain = replace(compare(requests, on, off), pooled=(min(both), max(both)))
        return self._learn(key, gain, versions, now)

    def _learn(self, key: tuple[int, int, Shape], gain: Gain, versions: tuple[int, ...], now: float) -> Gain:
        if len(self._known) > LOADS:
            self._known.clear()
        self._known[key] = Known(gain, versions, now)
        return gain


def is_steady(before: StepEvent, step: StepEvent) -> bool:
    """The step shows its kind and nothing else."""
    return (
        step.mode in ("spec", "plain")
        and before.mode == step.mode
        and before.requests == step.requests > 0
        and before.knob_epoch == step.knob_epoch
        and not (step.finished or before.finished or step.prefill_tokens or before.prefill_tokens)
        and not (step.replanned or step.overrun)
        and step.emitted > 0
        and len(step.widths) <= 1
    )


def _time(step: Taken) -> float:
    return step[2]

"""What the drafts achieved under each setting of the knobs: sums by knob epoch, the newest epochs kept. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from probes.events import StepEvent

KEPT = 50


@dataclass
class Epoch:
    """One setting of the knobs, from its first step to its last."""

    number: int
    t: float
    """Engine time at which it began, as far as this screen saw."""
    end: float
    """The same of its newest step, or of the change that ended it."""
    knobs: dict[str, Any] = field(default_factory=dict)
    """Empty when the change that opened it was not seen."""
    change: str = ""
    """What its opening changed; empty for the first epoch seen."""
    first_step: int | None = None
    last_step: int | None = None
    steps: int = 0
    verifying_steps: int = 0
    verifies: int = 0
    proposed: int = 0
    correct: int = 0
    emitted: int = 0
    by_depth: list[int] = field(default_factory=list)
    """Index d: verifies whose draft at depth d + 1 was accepted."""

    def add(self, step: StepEvent) -> None:
        if self.first_step is None:
            self.first_step = step.step
        self.last_step = step.step
        self.end = max(self.end, step.t)
        self.steps += 1
        self.emitted += step.emitted
        if not step.verified:
            return
        self.verifying_steps += 1
        self.verifies += step.verified
        self.proposed += step.proposed
        self.correct += step.correct_drafts
        depths = step.correct_by_position
        self.by_depth.extend([0] * (len(depths) - len(self.by_depth)))
        for depth, count in enumerate(depths):
            self.by_depth[depth] += count

    @property
    def accept_length(self) -> float | None:
        """1 + correct drafts / verifies, the bonus token included; None when nothing was verified."""
        return 1 + self.correct / self.verifies if self.verifies else None

    @property
    def accept_rate(self) -> float | None:
        """Correct drafts / proposed ones; None when none was proposed."""
        return self.correct / self.proposed if self.proposed else None

    @property
    def depth(self) -> int:
        """Draft depths to show: what the knobs ask for, or what was seen."""
        asked = self.knobs.get("steps")
        return max(len(self.by_depth), int(asked) if isinstance(asked, int) else 0)

    def reached(self, depth: int) -> int:
        """Verifies whose draft at ``depth`` (from 1) was accepted; at depth 0 all of them."""
        if depth == 0:
            return self.verifies
        return self.by_depth[depth - 1] if depth <= len(self.by_depth) else 0

    @property
    def tree(self) -> str:
        """``2/4/16``: steps, topk and draft tokens; ``?`` for what is not known."""
        return "/".join(str(self.knobs.get(name, "?")) for name in ("steps", "topk", "draft_tokens"))


class AcceptEpochs:
    """Epochs of one boot, the newest last."""

    def __init__(self) -> None:
        self.epochs: deque[Epoch] = deque(maxlen=KEPT)

    @property
    def current(self) -> Epoch | None:
        return self.epochs[-1] if self.epochs else None

    @property
    def before(self) -> Epoch | None:
        """The epoch before the current one."""
        return self.epochs[-2] if len(self.epochs) > 1 else None

    def opened(self, number: int, t: float, knobs: dict[str, Any], change: str = "") -> None:
        """The engine said which knobs hold in an epoch; ``change`` is what made it one, in words."""
        epoch = self._epoch(number, t)
        epoch.knobs = dict(knobs)
        epoch.change = change or epoch.change

    def add(self, step: StepEvent) -> None:
        """Count a step for its epoch."""
        self._epoch(step.knob_epoch, step.t).add(step)

    def _epoch(self, number: int, t: float) -> Epoch:
        current = self.current
        if current is not None and current.number == number:
            return current
        for epoch in reversed(self.epochs):
            if epoch.number == number:
                return epoch  # a step that was planned before the change and ended after it
        if current is not None and number > current.number:
            current.end = max(current.end, t)
        epoch = Epoch(number, t, t)
        if current is not None and number < current.number:
            return epoch  # older than what is kept: counted nowhere
        self.epochs.append(epoch)
        return epoch

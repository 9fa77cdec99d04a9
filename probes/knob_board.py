"""The knobs in force in an engine: who may change them to what, and the record of each change."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from probes.control import Applied, Refused, RefusedCode, SetKnobs
from probes.events import KnobEvent
from probes.knobs import KnobError, Knobs, apply_changes, parse_values

HISTORY = 100
"""Changes kept for whoever asks what was done."""


@dataclass(frozen=True)
class Change:
    """One accepted change."""

    old: dict[str, Any]
    new: dict[str, Any]
    who: str
    why: str
    step: int
    knob_epoch: int


class KnobBoard:
    """Applies changes between steps. Used by the engine's loop; ``knobs`` may be read from any thread."""

    def __init__(
        self,
        knobs: Knobs,
        *,
        boot_id: str = "",
        t: Callable[[], float] = time.time,
        publish: Callable[[KnobEvent], None] | None = None,
        validate: Callable[[Knobs], None] | None = None,
    ) -> None:
        """``publish`` gets an event a change. ``validate`` raises KnobError for what this engine cannot do.

        ``t`` stamps the events, in seconds since the epoch: give the bus's.
        """
        self.knobs = knobs
        self.knob_epoch = 0
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self._boot_id = boot_id
        self._t = t
        self._publish = publish
        self._validate = validate

    def as_dict(self) -> dict[str, Any]:
        """Knob -> value in force."""
        return msgspec.structs.asdict(self.knobs)

    def apply(self, request: SetKnobs, step: int) -> Applied | Refused:
        """Change the knobs from ``step`` on, or nothing at all; a change is published as one event and opens an epoch.

        Knobs that have their new value already are no change; when that goes for all of them the epoch stays.
        """
        try:
            if not request.changes:
                raise KnobError("no knob to change; give at least one as knob=value", code="bad_value")
            differing = self._differing(request.expect or {})
            if differing:
                return self._conflict(request, differing)
            knobs = apply_changes(self.knobs, request.changes)
            if self._validate is not None:
                self._validate(knobs)
        except KnobError as error:
            return Refused(request_id=request.request_id, code=error.code, message=str(error))
        before = self.as_dict()
        after = msgspec.structs.asdict(knobs)
        old = {name: before[name] for name in request.changes}
        new = {name: after[name] for name in request.changes}
        if old != new:
            self.knobs = knobs
            self.knob_epoch += 1
            self._record(request, old, new, step)
        return Applied(request_id=request.request_id, old=old, new=new, step=step, knob_epoch=self.knob_epoch)

    def _differing(self, expect: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Knob -> (expected, in force), for those that are not as expected."""
        found = self.as_dict()
        return {name: (value, found[name]) for name, value in parse_values(expect).items() if value != found[name]}

    def _conflict(self, request: SetKnobs, differing: dict[str, tuple[Any, Any]]) -> Refused:
        words = ", ".join(f"{name} is {found!r}, not {expected!r}" for name, (expected, found) in differing.items())
        by = f"; last changed by {self.history[-1].who or 'someone'}" if self.history else ""
        code: RefusedCode = "conflict"
        return Refused(
            request_id=request.request_id,
            code=code,
            message=f"{words}{by}; nothing was changed",
            found={name: found for name, (_, found) in differing.items()},
        )

    def _record(self, request: SetKnobs, old: dict[str, Any], new: dict[str, Any], step: int) -> None:
        self.history.append(Change(old, new, request.who, request.why, step, self.knob_epoch))
        if self._publish is not None:
            self._publish(
                KnobEvent(
                    boot_id=self._boot_id,
                    step=step,
                    t=self._t(),
                    knob_epoch=self.knob_epoch,
                    old=old,
                    new=new,
                    who=request.who,
                    why=request.why,
                )
            )

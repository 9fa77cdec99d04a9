"""The knobs in force in an engine: who may change them to what, for how long, and the record of each change."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from probes.control import Applied, Refused, RefusedCode, SetKnobs
from probes.events import AlertEvent, KnobEvent, KnobRevert
from probes.knobs import KnobError, Knobs, apply_changes, parse_values
from probes.reverts import Reverts, TimedChange, check_revert_after

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
        publish: Callable[[KnobEvent | AlertEvent], None] | None = None,
        validate: Callable[[Knobs], None] | None = None,
    ) -> None:
        """``publish`` gets an event a change. ``validate`` raises KnobError for what this engine cannot do.

        ``t`` stamps the events, in seconds since the epoch, and says when a change goes back: give the bus's, which
        no setting of the machine's clock disturbs.
        """
        self.knobs = knobs
        self.knob_epoch = 0
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self._boot_id = boot_id
        self._t = t
        self._publish = publish
        self._validate = validate
        self._reverts = Reverts()

    def as_dict(self) -> dict[str, Any]:
        """Knob -> value in force."""
        return msgspec.structs.asdict(self.knobs)

    def apply(self, request: SetKnobs, step: int) -> Applied | Refused:
        """Change the knobs from ``step`` on, or nothing at all; a change is published as one event and opens an epoch.

        Knobs that have their new value already are no change; when that goes for all of them the epoch stays. Whoever
        sets a knob decides anew how long it stays, also with the value it has: what waited for it is off.
        """
        try:
            if not request.changes:
                raise KnobError("no knob to change; give at least one as knob=value", code="bad_value")
            check_revert_after(request.revert_after_s)
            differing = self._differing(request.expect or {})
            if differing:
                return self._conflict(request, differing)
            knobs = self._checked(request.changes)
        except KnobError as error:
            return Refused(request_id=request.request_id, code=error.code, message=str(error))
        before = self.as_dict()
        after = msgspec.structs.asdict(knobs)
        old = {name: before[name] for name in request.changes}
        new = {name: after[name] for name in request.changes}
        timed = self._timed(request, old, new)
        was_waiting = self._reverts.cancel(new)
        if timed is not None:
            self._reverts.add(timed)
        if old != new or was_waiting:
            self._put(knobs, old, new, step, who=request.who, why=request.why, timed=timed)
        return Applied(
            request_id=request.request_id,
            old=old,
            new=new,
            step=step,
            knob_epoch=self.knob_epoch,
            revert_at=timed.t if timed else None,
            back_to=timed.back_to if timed else {},
        )

    def take_back_due(self, step: int) -> None:
        """Take back, from ``step`` on, the changes whose time is over; each is published like a change by hand."""
        next_t = self._reverts.next_t
        if next_t is None or self._t() < next_t:
            return
        for change in self._reverts.take_due(self._t()):
            try:
                knobs = self._checked(change.back_to)
            except KnobError as error:
                self._publish_alert(change, step, error)
                continue
            before = self.as_dict()
            old = {name: before[name] for name in change.back_to}
            self._put(knobs, old, change.back_to, step, who="engine", why=change.words)

    @property
    def reverts(self) -> list[KnobRevert]:
        """Knobs that go back by themselves, soonest first."""
        return self._reverts.waiting()

    @property
    def next_revert_in(self) -> float | None:
        """Seconds until ``take_back_due`` has something to do; None when nothing waits."""
        next_t = self._reverts.next_t
        return None if next_t is None else max(0.0, next_t - self._t())

    def _checked(self, changes: dict[str, Any]) -> Knobs:
        """The knobs after a change. Raises KnobError when they may not be like that."""
        knobs = apply_changes(self.knobs, changes)
        if self._validate is not None:
            self._validate(knobs)
        return knobs

    def _timed(self, request: SetKnobs, old: dict[str, Any], new: dict[str, Any]) -> TimedChange | None:
        """What of a change goes back, and to what: a value that is itself passing is nothing to go back to."""
        if request.revert_after_s is None:
            return None
        back_to = {name: value for name, value in self._reverts.settled(old).items() if value != new[name]}
        if not back_to:
            return None
        return TimedChange(
            back_to=back_to,
            new={name: new[name] for name in back_to},
            who=request.who,
            why=request.why,
            after_s=request.revert_after_s,
            t=self._t() + request.revert_after_s,
        )

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

    def _put(
        self,
        knobs: Knobs,
        old: dict[str, Any],
        new: dict[str, Any],
        step: int,
        *,
        who: str,
        why: str,
        timed: TimedChange | None = None,
    ) -> None:
        """Put the knobs in force, and say so. The epoch grows only if a value differs."""
        self.knobs = knobs
        self.knob_epoch += old != new
        self.history.append(Change(old, new, who, why, step, self.knob_epoch))
        if self._publish is not None:
            self._publish(
                KnobEvent(
                    boot_id=self._boot_id,
                    step=step,
                    t=self._t(),
                    knob_epoch=self.knob_epoch,
                    old=old,
                    new=new,
                    who=who,
                    why=why,
                    revert_at=timed.t if timed else None,
                    back_to=timed.back_to if timed else {},
                )
            )

    def _publish_alert(self, change: TimedChange, step: int, error: KnobError) -> None:
        """A change cannot go back, because of what was set since; it stays."""
        if self._publish is not None:
            words = ", ".join(f"{name}={value}" for name, value in change.back_to.items())
            self._publish(
                AlertEvent(
                    boot_id=self._boot_id,
                    step=step,
                    t=self._t(),
                    code="revert_failed",
                    level="warning",
                    message=f"{change.words}: going back to {words} does not fit the other knobs any more, so nothing "
                    f"was changed; set them by hand ({error})",
                    data={"back_to": change.back_to, "who": change.who},
                )
            )

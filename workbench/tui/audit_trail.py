"""Who changed which knob to what, when and why; which changes will be taken back, and when. Pure, bounded."""

from __future__ import annotations

from collections import deque
from typing import Any

from probes.events import HelloEvent, KnobEvent, KnobRevert

KEPT = 500
"""Changes kept; the oldest go first."""


class AuditTrail:
    """Every knob change that is known of, and what each knob was when this engine was first heard of."""

    def __init__(self) -> None:
        self.changes: deque[KnobEvent] = deque(maxlen=KEPT)
        """Oldest first."""
        self.at_start: dict[str, Any] = {}
        """Knob -> value at the engine's start, or, where that is not known, when this screen opened."""
        self.is_whole = False
        """``at_start`` is of the engine's start: every change since is known."""
        self.reverts: dict[str, KnobRevert] = {}
        """Knob -> the change back that waits for it."""
        self.version = 0
        self._boot_id = ""
        self._seqs: set[int] = set()

    def take_hello(self, hello: HelloEvent) -> None:
        """What is in force; the first of a boot says where the changes start from."""
        if hello.boot_id != self._boot_id:
            self.restart(hello.boot_id)
        if not self.at_start:
            self.at_start, self.is_whole = dict(hello.knobs), hello.knob_epoch == 0
        self.reverts = {revert.knob: revert for revert in hello.reverts}
        self.version += 1

    def restart(self, boot_id: str) -> None:
        """Another engine process: what was changed in the one before is history."""
        self._boot_id, self._seqs, self.reverts = boot_id, set(), {}
        self.at_start, self.is_whole = {}, False
        self.version += 1

    def take(self, change: KnobEvent) -> None:
        """A change as it happens."""
        if not self._is_new(change):
            return
        self.changes.append(change)
        for knob in change.new:
            self.reverts.pop(knob, None)
        if change.revert_at is not None:
            for knob, value in change.back_to.items():
                self.reverts[knob] = KnobRevert(
                    knob=knob, back_to=value, t=change.revert_at, who=change.who, why=change.why
                )
        self.version += 1

    def last_change(self, knob: str) -> KnobEvent | None:
        """The newest change of a knob in this boot."""
        return next(
            (c for c in reversed(self.changes) if knob in c.new and c.boot_id == self._boot_id),
            None,
        )

    @property
    def newest(self) -> KnobEvent | None:
        return self.changes[-1] if self.changes else None

    def is_of_now(self, change: KnobEvent) -> bool:
        """It happened to the engine that runs now, not to one before a restart."""
        return change.boot_id == self._boot_id

    def waits_for(self, change: KnobEvent) -> float | None:
        """When this change will be taken back, as far as that still stands; None when it stays."""
        due = [
            self.reverts[knob].t
            for knob in change.back_to
            if knob in self.reverts and self.reverts[knob].t == change.revert_at and self.is_of_now(change)
        ]
        return min(due) if due else None

    def _is_new(self, change: KnobEvent) -> bool:
        """Not taken yet; events without a number (made by hand) always are."""
        if change.boot_id != self._boot_id and self._boot_id:
            return True
        if change.seq in self._seqs and change.seq:
            return False
        self._seqs.add(change.seq)
        return True

"""The time axis of a recording: it never runs backwards, and an hour on it is an hour, whatever the clocks did.

An engine's ``t`` is its wall clock at boot plus time since, so it can jump only where a new boot begins, on a clock
that was set in between. There the recorder's own monotonic clock says how much time really passed. Events that come
late, fetched again, stand where they came.
"""

from __future__ import annotations

from probes.clock import Clock, SystemClock

JUMP_NS = 5_000_000_000
"""A new boot's clock that is off from the time that passed by less is believed, unless it goes back."""


class LogTime:
    """Gives every message its place on the axis, in ns since the epoch."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.last = int(self._clock.now() * 1e9)
        """The newest place given out, and that of what has no time of its own."""
        self._last_at = self._clock.monotonic()
        self._offset = 0
        self._boot = ""

    def of(self, t: float, boot_id: str) -> int:
        """The place of an event that was stamped ``t`` seconds by that boot of the engine."""
        stamped, now = round(t * 1e9), self._clock.monotonic()
        if not self._boot:
            self.last = stamped
        elif boot_id != self._boot:
            expected = self.last + round((now - self._last_at) * 1e9)
            is_off = stamped < self.last or abs(stamped - expected) > JUMP_NS
            self._offset = expected - stamped if is_off else 0
        self._boot, self._last_at = boot_id, now
        self.last = max(self.last, stamped + self._offset)
        return self.last

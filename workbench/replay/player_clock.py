"""The clock of a replay: the recording's own time, which a person stops, speeds up and sets.

Panels read it as they read the machine's clock when they are live. Ages, rates and staleness are therefore those of the
recording at the place it stands at, whatever the speed.
"""

from __future__ import annotations

import math

from probes.clock import Clock, SystemClock

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, math.inf)
"""What faster and slower go through. Infinite: as fast as the recording can be read and shown."""


def speed_text(speed: float) -> str:
    """``2x``, ``0.25x``, ``max``."""
    return "max" if math.isinf(speed) else f"{speed:g}x"


class PlayerClock:
    """Implements ``probes.clock.Clock``. Times are seconds since the epoch, within the recording's span.

    It stands still between two calls of ``run``, so that all panels of one paint show one time, and a person who pauses
    gets the place that is on the screen. Unlike other clocks it may be set back; whoever keeps a state by it starts
    anew then.
    """

    def __init__(self, start: float, end: float, *, speed: float = 1.0, real: Clock | None = None) -> None:
        """Stands at ``start``, playing. ``real``: the time that passes for the person who watches."""
        self.start, self.end = start, max(start, end)
        self.real = real or SystemClock()
        self.is_paused = False
        self._speed = speed
        self._place = start
        self._since = self.real.monotonic()

    @property
    def position(self) -> float:
        """The time that is shown."""
        return self._place

    def run(self) -> float:
        """Let the time pass that passed for the person; the new position."""
        passed = self.real.monotonic() - self._since
        # Infinite speed reaches the end at once; whoever cannot read that fast sets it back.
        if not self.is_paused and passed > 0:
            self.set(self._place + passed * self._speed)
        return self._place

    def now(self) -> float:
        """The recording's wall time."""
        return self.position

    def monotonic(self) -> float:
        """The same: a recording's times never fall."""
        return self.position

    @property
    def offset(self) -> float:
        """Seconds since the recording's start."""
        return self.position - self.start

    @property
    def is_at_end(self) -> bool:
        """Nothing comes any more."""
        return self.position >= self.end

    @property
    def speed(self) -> float:
        """Seconds of the recording in a second."""
        return self._speed

    def set_speed(self, speed: float) -> None:
        """From here on.

        Raises:
            ValueError: nothing would move, or backwards.
        """
        if not speed > 0:
            raise ValueError(f"a speed of {speed:g} does not play; give a number above 0")
        self._speed = speed

    def change_speed(self, by: int) -> None:
        """So many notches faster, or slower."""
        if by > 0:
            faster = [speed for speed in SPEEDS if speed > self._speed]
            self.set_speed(faster[min(by, len(faster)) - 1] if faster else SPEEDS[-1])
        elif by < 0:
            slower = [speed for speed in reversed(SPEEDS) if speed < self._speed]
            self.set_speed(slower[min(-by, len(slower)) - 1] if slower else SPEEDS[0])

    def pause(self) -> None:
        """Stand still, at what is shown."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on from here."""
        self.set(self._place)
        self.is_paused = False

    def set(self, t: float) -> None:
        """Stand at ``t``, or at the nearest end of the recording, and go on from there unless paused."""
        self._place = min(max(t, self.start), self.end)
        self._since = self.real.monotonic()

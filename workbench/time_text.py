"""Times as people read them at a glance: of day, since something began, how old. Exact ones: probes/duration.py."""

from __future__ import annotations

import time


def clock_text(t: float, *, ms: bool = False) -> str:
    """``14:03:20``, or with milliseconds ``14:03:20.125``: local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(t)) + (f".{int(t % 1 * 1000):03}" if ms else "")


def elapsed_text(seconds: float) -> str:
    """``0:42``, ``12:05``, ``1:02:03``."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def offset_text(seconds: float) -> str:
    """A place in a recording: ``0:12.3``, ``1:02:03.4``."""
    tenths = int(seconds * 10 + 1e-6)
    return f"{elapsed_text(tenths // 10)}.{tenths % 10}"


def age_text(seconds: float) -> str:
    """``12 s``, ``5 min``, ``3 h``: for a line or a column that has no room for more."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"

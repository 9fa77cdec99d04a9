"""Is the process that wrote this still there, or has its number gone to another one?"""

from __future__ import annotations

import os
from pathlib import Path


def start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since the machine's boot; None when it is gone (or a zombie), or without /proc.

    A pid and its start time together name a process for good: a recycled pid has another start time.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name is in parentheses and may hold anything, so count fields from the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(pid: int, started: int | None) -> bool:
    """Whether the process that had this pid and start time still runs. ``started`` None compares the pid only."""
    if pid <= 0:
        return False
    if os.path.isdir("/proc/self"):
        now = start_time(pid)
        return now is not None and (started is None or now == started)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # there, and someone else's
    return True

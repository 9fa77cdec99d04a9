"""A place in a recording in a person's words: ``12s``, ``50%``, ``step:1234``, ``switch:2``, ``14:05:30``."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from probes.duration import parse_seconds
from workbench.replay.bookmarks import Bookmark
from workbench.replay.recorded_session import RecordedSession, SessionInfo
from workbench.replay.step_finder import find_step
from workbench.time_text import clock_text

FORMS = "12s, 1m30s, 50%, HH:MM:SS, step:1234, switch:2, bookmark:NAME, start or end"

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
DAY_S = 86_400.0


class PlaceError(Exception):
    """The words name no place, or one outside the recording; the message says what there is."""


def span_text(info: SessionInfo) -> str:
    """``14:03:20 to 14:05:00, 100.0 s``: local time."""
    return f"{clock_text(info.start)} to {clock_text(info.end)}, {info.end - info.start:.1f} s"


def seconds_of(words: str) -> float | None:
    """``12``, ``12.5s``, ``1m30s``, ``2h`` in seconds; None when it is something else."""
    try:
        return parse_seconds(words)
    except ValueError:
        return None


def find_place(
    words: str, session: RecordedSession, *, here: float | None = None, bookmarks: Sequence[Bookmark] = ()
) -> float:
    """The time of a place, seconds since the epoch. ``here``: what ``+5s`` and ``-5s`` count from.

    Raises:
        PlaceError: as its words say.
    """
    info, words = session.info, words.strip()
    kind, colon, value = words.partition(":")
    if words == "start":
        return info.start
    if words == "end":
        return info.end
    if colon and kind == "step":
        return _step(value, session)
    if colon and kind == "switch":
        return _switch(value, session)
    if colon and kind == "bookmark":
        return _bookmark(value.strip(), bookmarks)
    if words.endswith("%"):
        return _share(words, info)
    if words[:1] in ("+", "-") and here is not None and (moved := seconds_of(words[1:])) is not None:
        return min(max(here + (moved if words[0] == "+" else -moved), info.start), info.end)
    if (seconds := seconds_of(words)) is not None:
        return _within(words, info.start + seconds, info)
    if match := _CLOCK.fullmatch(words):
        return _time_of_day(words, match, info)
    raise PlaceError(f"{words!r} is no place in a recording; expected {FORMS}")


def _within(words: str, t: float, info: SessionInfo) -> float:
    # A hair beyond either end is rounding, as in `12s` of a recording of 11.9999 s.
    if not info.start - 0.001 <= t <= info.end + 0.001:
        raise PlaceError(f"{words} is outside the recording: it spans {span_text(info)}")
    return min(max(t, info.start), info.end)


def _share(words: str, info: SessionInfo) -> float:
    try:
        share = float(words[:-1])
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise PlaceError(f"{words!r} is no part of a recording; expected 0% to 100%")
    return info.start + (info.end - info.start) * share / 100


def _time_of_day(words: str, match: re.Match[str], info: SessionInfo) -> float:
    hours, minutes, seconds = int(match[1]), int(match[2]), float(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        raise PlaceError(f"{words!r} is no time of day; expected HH:MM:SS")
    day = time.localtime(info.start)
    midnight = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    t = midnight + hours * 3600 + minutes * 60 + seconds
    # Without fractions a second stands for all of it: the recording begins somewhere within its first one.
    whole = match[3] is None or "." not in match[3]
    if whole and t < info.start < t + 1:
        return info.start
    while t < info.start and t + DAY_S <= info.end:
        t += DAY_S
    return _within(words, t, info)


def _step(value: str, session: RecordedSession) -> float:
    if not value.isdecimal():
        raise PlaceError(f"step:{value} names no step; expected a number, as in step:1234")
    found = find_step(session, int(value))
    if found is None:
        newest = session.before(session.info.end, "step", 1)
        last = f"the last one is step {getattr(newest[0][1], 'step', '?')}" if newest else "it has no steps"
        raise PlaceError(f"step {int(value)} is not in the recording: {last}")
    return found.t


def _switch(value: str, session: RecordedSession) -> float:
    switches = [mark for mark in session.marks() if mark.kind == "switch"]
    if not value.isdecimal() or not 1 <= int(value) <= len(switches):
        count = f"{len(switches)} switches" if len(switches) != 1 else "1 switch"
        raise PlaceError(f"switch:{value} is not in the recording: it has {count} between speculating and plain")
    return switches[int(value) - 1].t


def _bookmark(name: str, bookmarks: Sequence[Bookmark]) -> float:
    for bookmark in bookmarks:
        if bookmark.name == name:
            return bookmark.t
    known = ", ".join(bookmark.name for bookmark in bookmarks)
    raise PlaceError(f"no bookmark {name!r}; " + (f"there are {known}" if known else "the recording has none"))

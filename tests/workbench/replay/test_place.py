"""Places in a person's words."""

from __future__ import annotations

import re
import time

import pytest

from probes.subscriber import Received, Restart
from tests.workbench import made_events as made
from tests.workbench.replay.memory_session import MemorySession
from workbench.replay.bookmarks import Bookmark
from workbench.replay.place import PlaceError, find_place, seconds_of, span_text

T0 = made.T0


def session(steps: int = 1200) -> MemorySession:
    """Speculating but for steps 300 to 599; steps 700 to 709 were lost; a restart after 1,000."""
    told: list[tuple[float, Received]] = [(T0, made.hello())]
    for n in range(1, steps + 1):
        t = T0 + n * 0.1
        if 700 <= n < 710:
            continue
        if n == 1001:
            told.append((t - 0.1, Restart(made.BOOT, "c0ffee00")))
        number, boot = (n, made.BOOT) if n <= 1000 else (n - 1000, "c0ffee00")
        told.append((t, made.step(number, 3, t=t, boot_id=boot, spec=not 300 <= n < 600)))
    return MemorySession(told)


SESSION = session()


@pytest.mark.parametrize(
    ("words", "offset"),
    [
        ("start", 0.0),
        ("end", 120.0),
        ("12s", 12.0),
        ("12", 12.0),
        ("1.5s", 1.5),
        ("1m30s", 90.0),
        ("2m", 120.0),
        ("50%", 60.0),
        ("step:1", 0.1),
        ("step:1000", 100.0),
        ("step:705", 71.0),
        ("switch:1", 30.0),
        ("switch:2", 60.0),
        ("bookmark:here", 33.0),
        ("+5s", 15.0),
        ("-5s", 5.0),
        ("-1m", 0.0),
        ("+1h", 120.0),
        (" 12s ", 12.0),
    ],
)
def test_places(words: str, offset: float) -> None:
    place = find_place(words, SESSION, here=T0 + 10, bookmarks=[Bookmark(T0 + 33, "here")])
    assert place - T0 == pytest.approx(offset, abs=1e-6)


def test_time_of_day_is_local() -> None:
    words = time.strftime("%H:%M:%S", time.localtime(T0 + 42))
    assert find_place(words, SESSION) == T0 + 42
    assert find_place(words + ".5", SESSION) == T0 + 42.5


def test_a_second_that_the_recording_begins_in() -> None:
    late = MemorySession([(T0 + 0.7, made.step(1, t=T0 + 0.7)), (T0 + 5, made.step(2, t=T0 + 5))])
    assert find_place(time.strftime("%H:%M:%S", time.localtime(T0)), late) == T0 + 0.7


def test_after_midnight() -> None:
    day = time.localtime(T0)
    evening = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 23, 59, 50, 0, 0, -1))
    night = MemorySession([(evening, made.step(1, t=evening)), (evening + 60, made.step(2, t=evening + 60))])
    assert find_place("00:00:20", night) == evening + 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("121s", "121s is outside the recording: it spans "),
        ("03:00:00" if time.localtime(T0).tm_hour != 3 else "05:00:00", "is outside the recording"),
        ("step:2000", "step 2000 is not in the recording: the last one is step 200"),
        ("step:x", "names no step; expected a number, as in step:1234"),
        ("switch:3", "it has 2 switches between speculating and plain"),
        ("switch:0", "it has 2 switches"),
        ("bookmark:gone", "no bookmark 'gone'; there are here"),
        ("101%", "expected 0% to 100%"),
        ("x%", "expected 0% to 100%"),
        ("25:00:00", "is no time of day"),
        ("soon", "'soon' is no place in a recording; expected 12s, 1m30s"),
        ("", "is no place in a recording"),
        ("-", "is no place in a recording"),
        ("step", "is no place in a recording"),
        ("1s1m", "is no place in a recording"),
    ],
)
def test_words_that_name_no_place(words: str, message: str) -> None:
    with pytest.raises(PlaceError, match=re.escape(message)):
        find_place(words, SESSION, bookmarks=[Bookmark(T0, "here")])


def test_relative_places_need_a_here() -> None:
    with pytest.raises(PlaceError):
        find_place("+5s", SESSION)


def test_a_recording_without_steps() -> None:
    with pytest.raises(PlaceError, match="it has no steps"):
        find_place("step:1", MemorySession([(T0, made.hello())]))
    with pytest.raises(PlaceError, match="the recording has none"):
        find_place("bookmark:a", MemorySession([]))


def test_a_step_is_found_without_reading_all() -> None:
    """B100: also where steps came unevenly."""
    times = [T0 + (n * 0.001 if n < 50_000 else 50 + (n - 50_000) * 0.5) for n in range(1, 60_001)]
    long = MemorySession([(t, made.step(n, 3, t=t)) for n, t in enumerate(times, 1)])
    for number in (1, 2, 777, 49_999, 50_001, 59_999, 60_000):
        long.reads.clear()
        assert find_place(f"step:{number}", long) == times[number - 1]
        assert long.reads["step"] < 2000


def test_seconds() -> None:
    assert [seconds_of(words) for words in ("90", "1h", "1h1m1s", "0.5s")] == [90.0, 3600.0, 3661.0, 0.5]
    assert [seconds_of(words) for words in ("", "s", "m", "1x", "-1", "1m1m", "nan", "1e3")] == [None] * 8


def test_span() -> None:
    assert span_text(SESSION.info).endswith(", 120.0 s")

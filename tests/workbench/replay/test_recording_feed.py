"""What a state knows after a jump is what it knows after playing there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from probes.clock import FakeClock
from probes.events import StepEvent
from tests.workbench import made_events as made
from tests.workbench.replay.memory_session import MemorySession
from tests.workbench.replay.stories import T0, long_session
from workbench.replay import look_back
from workbench.replay.player_clock import PlayerClock
from workbench.replay.recorded_session import RecordedSession
from workbench.replay.recording_feed import DRAIN, RecordingFeed
from workbench.tui.feed import Heard, Rewound
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import status_lines
from workbench.tui.timeline import Entry, Mark

SESSION = MemorySession(long_session(6000))


class Screen:
    """A state at the end of a feed, as the app keeps it."""

    def __init__(self, session: RecordedSession) -> None:
        self.real = FakeClock()
        self.clock = PlayerClock(session.info.start, session.info.end, real=self.real)
        self.feed = RecordingFeed(session, self.clock)
        self.state = SessionState()
        self.feed.start()

    def tick(self) -> None:
        for item in self.feed.drain():
            self.state.apply(item, self.clock.monotonic())

    def play_to(self, t: float) -> None:
        """In ticks of some seconds: what is told has its own times, so the pace makes no difference."""
        while self.clock.position < t:
            self.real.advance(min(2.0, t - self.clock.position))
            self.tick()
        self.clock.pause()

    def jump_to(self, t: float) -> None:
        self.clock.pause()
        self.feed.go(t)
        self.tick()


def told(screen: Screen) -> dict[str, Any]:
    """Everything that panels ask a state, the rows apart."""
    state, now = screen.state, screen.clock.monotonic()
    return {
        "lines": status_lines(state, "demo", now, 120),
        "knobs": (state.knobs, state.knob_epoch),
        "losses": (dict(state.lost), state.recovered, state.dropped, state.malformed, state.restarts),
        "events": (state.hello, state.last_step, state.heartbeat, state.last_alert),
        "connection": (state.connection(now), state.silent_for(now), state.stage_seconds(now)),
        "rate": state.tokens_per_second(now),
        "acceptance": state.acceptance(now),
        "gap": state.lost_recently(now),
        "mode": state.mode_word(now),
    }


def rows(screen: Screen) -> list[Entry]:
    """The newest rows, from the last hole on."""
    kept: list[Entry] = []
    for entry in screen.state.timeline:
        kept = [] if isinstance(entry, Mark) and entry.kind == "skipped" else [*kept, entry]
    return kept


@pytest.fixture(params=["as it is", "short memory"])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Also with so small a window that nearly every place has steps before it that are left out."""
    if request.param == "short memory":
        monkeypatch.setattr(look_back, "KEEP_STEPS", 40)
        monkeypatch.setattr(look_back, "MOST_STEPS", 200)
    return str(request.param)


def test_a_jump_tells_what_playing_there_tells(window: str) -> None:
    """At random places, forward and back."""
    info = SESSION.info
    dice = random.Random(7)
    places = sorted(dice.uniform(info.start, info.end) for _ in range(30))
    played, jumped = Screen(SESSION), Screen(SESSION)
    expected: list[tuple[float, dict[str, Any], list[Entry]]] = []
    for place in places:
        played.play_to(place)
        expected.append((played.clock.position, told(played), list(played.state.timeline)[-60:]))
        played.clock.resume()
    dice.shuffle(expected)
    for place, what, newest in expected:
        jumped.jump_to(place)
        assert told(jumped) == what, f"{place - info.start} s"
        kept = rows(jumped)[-60:]
        assert kept == newest[-len(kept) :]
        assert len(kept) >= min(len(newest), 30)


def test_playing_on_after_a_jump_is_playing(window: str) -> None:
    info = SESSION.info
    middle, end = info.start + (info.end - info.start) * 0.6, info.start + (info.end - info.start) * 0.65
    played, jumped = Screen(SESSION), Screen(SESSION)
    played.play_to(end)
    jumped.jump_to(middle)
    jumped.clock.resume()
    jumped.play_to(end)
    assert told(jumped) == told(played)
    assert rows(jumped)[-300:] == list(played.state.timeline)[-len(rows(jumped)[-300:]) :]


def test_an_accept_length_of_long_ago_stays_known() -> None:
    """Off for more steps than are kept: n/a, the last value and its age, as if it had played."""
    steps = [made.step(n, 3) for n in range(1, 100)]
    steps += [made.step(n, 3, spec=False, reason="spec_off") for n in range(100, 4000)]
    session = MemorySession([(T0, made.hello()), *((step.t, step) for step in steps)])
    played, jumped = Screen(session), Screen(session)
    played.clock.set_speed(64)
    played.play_to(session.info.end)
    jumped.jump_to(session.info.end)
    assert told(jumped) == told(played)
    assert "(last 2.33" in str(told(jumped)["lines"])
    marks = [entry.text for entry in jumped.state.timeline if isinstance(entry, Mark)]
    assert marks == ["the steps before 3000 are in the recording; go back to see them"]


def test_an_idle_day_is_not_read_beat_by_beat() -> None:
    """B100: what a jump reads does not grow with what lies between."""
    told_: list[Any] = [(T0, made.hello()), (T0 + 1, made.step(1, 3, t=T0 + 1))]
    told_ += [(T0 + 2 + n, made.heartbeat(n, "idle", float(n), t=T0 + 2 + n)) for n in range(86_400)]
    session = MemorySession(told_)
    screen = Screen(session)
    screen.jump_to(session.info.end)
    assert session.reads["heartbeat"] < 50
    assert told(screen)["mode"] == "IDLE"
    assert told(screen)["events"][1].step == 1


def test_a_jump_reads_the_window_and_not_what_is_before() -> None:
    """B100, B103: the work of a jump does not grow with the recording."""
    session = MemorySession([(t, made.step(n, 3, t=t)) for n in range(1, 60_001) for t in (T0 + n * 0.02,)])
    screen = Screen(session)
    screen.jump_to(session.info.end - 100)
    assert session.reads["step"] < 3 * look_back.MOST_STEPS


def test_a_jump_asks_for_little_more_than_its_window() -> None:
    """The window has 1,200 steps, and each of those asked for is read from the file."""
    session = MemorySession([(t, made.step(n, 3, t=t)) for n in range(1, 20_001) for t in (T0 + n * 0.01,)])
    screen = Screen(session)
    screen.jump_to(session.info.end - 50)
    assert session.most_times == 1500


def test_fast_play_is_cut_and_holds_the_clock_back() -> None:
    """At max the clock stands where the last item that was given out stands, tick by tick, and reaches the end."""
    session = MemorySession([(T0 + n * 0.01, made.step(n, 3, t=T0 + n * 0.01)) for n in range(1, 10_001)])
    screen = Screen(session)
    screen.clock.set_speed(float("inf"))
    seen: list[int] = []
    while not screen.clock.is_at_end:
        screen.real.advance(0.1)
        items = screen.feed.drain()
        assert len(items) <= DRAIN
        last = items[-1]
        assert isinstance(last, Heard)
        assert screen.clock.position == last.at
        seen += [item.item.step for item in items if isinstance(item, Heard) and isinstance(item.item, StepEvent)]
    assert seen == list(range(1, 10_001))


def test_steps_forward_and_back_go_through_every_step() -> None:
    session = MemorySession(long_session(300, seed=3))
    screen = Screen(session)
    screen.clock.pause()
    screen.tick()
    forward: list[tuple[int, str]] = []
    while screen.feed.step_forward():
        screen.tick()
        step = screen.state.last_step
        assert step is not None
        forward.append((step.step, step.boot_id))
    numbers = [(step.step, step.boot_id) for _, step in session.timed if isinstance(step, StepEvent)]
    assert forward == numbers
    backward = [forward[-1]]
    while screen.feed.step_back():
        screen.tick()
        step = screen.state.last_step
        assert step is not None
        backward.append((step.step, step.boot_id))
    assert backward == numbers[::-1]


def test_steps_that_share_a_time_are_shown_together() -> None:
    """B101: an axis that stood still, after a clock was set."""
    times = [1.0, 2.0, 2.0, 2.0, 3.0]
    session = MemorySession([(T0 + t, made.step(n, 3, t=T0 + t)) for n, t in enumerate(times, 1)])
    screen = Screen(session)
    screen.clock.pause()
    screen.tick()
    shown: list[int] = []
    while screen.feed.step_forward():
        screen.tick()
        shown.append(screen.state.last_step.step if screen.state.last_step else 0)
    assert shown == [4, 5]
    while screen.feed.step_back():
        screen.tick()
        shown.append(screen.state.last_step.step if screen.state.last_step else 0)
    assert shown == [4, 5, 4, 1]


def test_a_start_in_the_middle_begins_with_a_jump() -> None:
    screen = Screen(SESSION)
    screen.clock.set(SESSION.info.start + 60)
    screen.feed.start()
    items = screen.feed.drain()
    assert isinstance(items[0], Rewound)
    screen.feed.close()
    assert screen.feed.drain() == []


def test_an_empty_recording_shows_nothing() -> None:
    screen = Screen(MemorySession([]))
    screen.real.advance(1.0)
    screen.tick()
    assert screen.clock.is_at_end
    assert not screen.feed.step_forward()
    assert not screen.feed.step_back()
    screen.jump_to(5.0)
    assert screen.state.last_step is None

"""The same events live and replayed give the same screen, but for the player's line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from probes.clock import FakeClock
from probes.subscriber import Gap, Received
from tests.workbench import made_events as made
from tests.workbench.fake_feed import FakeFeed, FakeSteering
from tests.workbench.replay.recorded_file import write_recording
from workbench.recording.reader import Recording
from workbench.replay.player import Player
from workbench.replay.replay_app import ReplayApp
from workbench.replay.screenshot import footer_is_current, screen_text
from workbench.tui.app import AttachApp

T0 = made.T0
SIZES = [(80, 24), (120, 40)]
VIEWS = ("overview", "steps", "acceptance", "decisions", "knobs")


def story() -> list[tuple[float, Received]]:
    """A load through the threshold, a knob change, a loss, an alert, an idle while, silence, and work again."""
    told: list[tuple[float, Received]] = [(T0, made.hello())]
    beat = 0

    def step(number: int, requests: int, t: float, **changes: object) -> None:
        nonlocal beat
        while T0 + beat + 1 < t:
            beat += 1
            stage = "run" if t - (T0 + beat) < 2 else "idle"
            told.append((T0 + beat, made.heartbeat(beat, stage, 0.25, step=number - 1, t=T0 + beat)))
        told.append((t, made.step(number, requests, t=t, **changes)))

    for number in range(1, 60):
        step(number, 1 + number // 10, T0 + number * 0.25)
    told.append((T0 + 15.0, made.knob_change(60, {"threshold": 4}, {"threshold": 6}, t=T0 + 15.0, why="more room")))
    for number in range(60, 80):
        step(number, 6, T0 + number * 0.25 + 0.125, spec=True, knob_epoch=1)
    told.append((T0 + 20.0, Gap("step", 80, 83, recovered=False)))
    told.append((T0 + 20.0, made.alert(t=T0 + 20.0, step=83)))
    step(84, 2, T0 + 21.0, knob_epoch=1)
    for number in range(85, 100):
        step(number, 3, T0 + 40 + (number - 85) * 0.25, knob_epoch=1)  # after idling
    for number in range(100, 110):
        step(number, 7, T0 + 60 + (number - 100) * 0.5, knob_epoch=1)
    return told


MOMENTS = (3.3, 14.9, 20.2, 33.0, 64.4)
"""Seconds after the start: speculating, above the threshold, right after the loss, idle, and the newest epoch."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    path = write_recording(tmp_path_factory.mktemp("recording") / "story.mcap", story())
    with Recording.open(path) as opened:
        yield opened


async def settle(app: AttachApp, pilot: Pilot[int]) -> None:
    """Let the screen paint all of what is there."""
    async with asyncio.timeout(30):
        await pilot.pause()
        while not footer_is_current(app):
            await pilot.pause(0.01)


async def all_views(app: AttachApp, pilot: Pilot[int]) -> dict[str, str]:
    """Each view's screen, as it is now, without the line of keys: those that steer stand on a live one only."""
    texts = {}
    for number, name in enumerate(VIEWS, 1):
        app._views[number - 1].forget()  # how often it is drawn is not the question here
        app.action_view(number)
        await settle(app, pilot)
        texts[name] = screen_text(app).rstrip("\n").rpartition("\n")[0]
    return texts


async def live_screens(size: tuple[int, int]) -> list[dict[str, str]]:
    feed, clock = FakeFeed(), FakeClock(now=T0, monotonic=T0)
    app = AttachApp("demo", feed, clock, FakeSteering())
    app.state.is_replay = True  # what to do about a live engine is not said of a recorded one
    screens = []
    told = story()
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        for moment in MOMENTS:
            while told and told[0][0] <= T0 + moment:
                t, item = told.pop(0)
                clock.advance(t - clock.now())
                feed.items.append(item)
                app.tick()
            clock.advance(T0 + moment - clock.now())
            screens.append(await all_views(app, pilot))
    return screens


async def replayed_screens(recording: Recording, size: tuple[int, int], jump: bool) -> list[dict[str, str]]:
    """With a line more, which is the player's and is left out."""
    real = FakeClock()
    player = Player(recording, real=real)
    app = ReplayApp(player)
    screens = []
    async with app.run_test(size=(size[0], size[1] + 1)) as pilot:
        await settle(app, pilot)
        for moment in MOMENTS:
            if jump:
                player.clock.pause()
                player.go(T0 + moment)
            else:
                while player.clock.position < T0 + moment - 1e-6:
                    real.advance(min(1.7, T0 + moment - player.clock.position))
                    app.tick()
            views = await all_views(app, pilot)
            assert all(text.startswith(" REPLAY  ") for text in views.values())
            screens.append({name: text.split("\n", 1)[1] for name, text in views.items()})
    return screens


@pytest.mark.parametrize("size", SIZES)
async def test_the_same_screens(recording: Recording, size: tuple[int, int]) -> None:
    live = await live_screens(size)
    for jump in (False, True):
        replayed = await replayed_screens(recording, size, jump)
        for moment, expected, found in zip(MOMENTS, live, replayed, strict=True):
            for view in VIEWS:
                how = "jumped to" if jump else "played to"
                assert found[view] == expected[view], f"{view}, {how} {moment} s"
    assert len({screen["overview"] for screen in live}) == len(MOMENTS), "the moments differ"

"""The player's keys, on a recording in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widget import Widget

from probes.clock import FakeClock
from probes.subscriber import Received
from tests.workbench import made_events as made
from tests.workbench.replay.memory_session import MemorySession
from tests.workbench.replay.recorded_file import write_recording
from workbench.recording.reader import Recording
from workbench.replay.bookmarks import Bookmarks, bookmarks_path
from workbench.replay.player import Player
from workbench.replay.recorded_session import RecordedSession
from workbench.replay.replay_app import ReplayApp, UnknownScreen
from workbench.replay.screenshot import footer_is_current, screen_text
from workbench.tui.app import AttachApp
from workbench.tui.help_screen import IN_A_RECORDING, sections
from workbench.tui.timeline import Mark

T0 = made.T0


def told() -> list[tuple[float, Received]]:
    """A step a second; plain from 20 to 39; a knob change at 30 and an alert at 45."""
    items: list[tuple[float, Received]] = [(T0, made.hello(name="load"))]
    for n in range(1, 61):
        t = T0 + n
        if n == 30:
            items.append((t - 0.5, made.knob_change(30, {"threshold": 4}, {"threshold": 2}, t=t - 0.5)))
        if n == 45:
            items.append((t - 0.5, made.alert(t=t - 0.5, step=44)))
        items.append((t, made.step(n, 3, t=t, spec=not 20 <= n < 40, knob_epoch=int(n >= 30))))
    return items


class Replay:
    """An app on a player, with the keys in a test's hands."""

    def __init__(self, session: RecordedSession | None = None, path: Path | None = None, screen: str = "steps") -> None:
        self.real = FakeClock()
        self.player = Player(session or MemorySession(told()), path, real=self.real)
        self.app = ReplayApp(self.player, screen)
        self.pilot: Pilot[int]

    @asynccontextmanager
    async def run(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Replay]:
        async with self.app.run_test(size=size) as self.pilot:
            async with asyncio.timeout(30):
                while not footer_is_current(self.app):
                    await self.pilot.pause(0.01)
            yield self

    async def press(self, *keys: str) -> str:
        """The screen after the keys."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return screen_text(self.app)

    async def wait(self, seconds: float) -> str:
        """The screen after a while."""
        self.real.advance(seconds)
        self.app.tick()
        await self.pilot.pause()
        return screen_text(self.app)

    @property
    def step(self) -> int:
        return self.app.state.last_step.step if self.app.state.last_step else 0


async def test_it_plays_pauses_and_ends() -> None:
    async with Replay().run() as replay:
        assert "specwb  load" in await replay.wait(0.0)
        text = await replay.wait(10.5)
        assert text.startswith(" REPLAY  playing 1x  0:10.5 / 1:00.0")
        assert replay.step == 10
        text = await replay.press("p")
        assert " REPLAY  paused 1x" in text
        assert "0:10.5" in await replay.wait(100.0)
        await replay.press("p")
        text = await replay.wait(100.0)
        assert " REPLAY  END 1x  1:00.0 / 1:00.0" in text
        assert replay.step == 60
        text = await replay.press("p")
        assert "playing 1x  0:00.0" in text
        assert "from the start" in text
        await replay.wait(5.0)
        assert replay.step == 5


async def test_steps_both_ways() -> None:
    async with Replay().run() as replay:
        await replay.wait(10.5)
        assert "paused" in await replay.press("full_stop")
        assert replay.step == 11
        await replay.press("full_stop", "full_stop", "comma")
        assert replay.step == 12
        text = await replay.press("comma", "comma")
        assert replay.step == 10
        assert "›    10 SPEC" in text
        assert "11 SPEC" not in text, "what comes later is not known here"
        await replay.press("0")
        assert "no step before this one" in await replay.press("comma")
        await replay.press("colon", *"end", "enter")
        assert "no step after this one" in await replay.press("full_stop")


async def test_a_small_step_is_drawn_on_every_view() -> None:
    """Views that are drawn four times a second live follow steps of milliseconds while the time stands."""
    told_: list[tuple[float, Received]] = [(T0, made.hello())]
    told_ += [(T0 + n * 0.01, made.step(n, 1 + n % 3, t=T0 + n * 0.01)) for n in range(1, 100)]
    async with Replay(MemorySession(told_), screen="overview").run() as replay:
        await replay.wait(0.5)
        before = await replay.press("p")
        after = await replay.press("full_stop")
        assert replay.step == 51
        assert "running 1" in after
        assert "running 3" in before
        await replay.press("p")
        await replay.wait(0.4)
        text = await replay.wait(100.0)
        assert "END" in text
        text = await replay.wait(0.1)
        assert "running 1" in text, "the last step's"


async def test_speed() -> None:
    async with Replay().run() as replay:
        await replay.press("greater_than_sign", "greater_than_sign")
        assert "playing 4x" in await replay.wait(2.0)
        assert replay.step == 8
        await replay.press(*["less_than_sign"] * 3)
        assert "playing 0.5x" in await replay.wait(4.0)
        assert replay.step == 10
        text = await replay.press(*["greater_than_sign"] * 20)
        assert "speed max" in text
        assert "END max" in await replay.wait(0.1)


async def test_switches_and_marks() -> None:
    async with Replay().run() as replay:
        text = await replay.press("right_square_bracket")
        assert "switch 1 of 2: spec → plain at step 20" in text
        assert replay.step == 20
        assert "paused" in text
        await replay.press("right_square_bracket")
        assert replay.step == 40
        assert "no switch between speculating and plain after here" in await replay.press("right_square_bracket")
        await replay.press("left_square_bracket")
        assert replay.step == 20
        text = await replay.press("right_curly_bracket")
        assert "knob 1 of 2" in text
        assert replay.app.state.knobs["threshold"] == 2
        assert "alert 2 of 2: acceptance fell to 1.02" in await replay.press("right_curly_bracket")
        none = "no mark (knob change, alert, gap, restart, bookmark) after here"
        assert none in await replay.press("right_curly_bracket")
        await replay.press("left_curly_bracket", "comma")
        assert replay.app.state.knobs["threshold"] == 4, "before the change it is not known"


async def test_go_to_a_place() -> None:
    async with Replay().run() as replay:
        text = await replay.press("colon")
        assert "Go to" in text
        await replay.press(*"step:33", "enter")
        assert replay.step == 33
        assert replay.app.screen is replay.app.screen_stack[0]
        text = await replay.press("colon", *"soon", "enter")
        assert "'soon' is no place in a recording" in " ".join(text.split())
        await replay.press("escape")
        await replay.press("colon", "minus", *"3s", "enter")
        assert replay.step == 30
        assert "playing" in await replay.wait(0.0), "going to a place does not pause"
        await replay.press("0")
        assert replay.step == 0


async def test_bookmarks_are_kept_beside_the_recording(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "load.mcap", told())
    before = path.read_bytes()
    with Recording.open(path) as recording:
        async with Replay(recording, path).run() as replay:
            await replay.wait(12.0)
            text = await replay.press("b", *"odd one", "enter")
            assert "bookmark 'odd one' at 0:12.0" in text
            await replay.wait(8.0)
            await replay.press("b", "enter")
            assert "0:20.0  mark 2" in await replay.press("B")
            await replay.press("up", "up", "down", "up", "home", "enter")
            assert replay.step == 12
            await replay.press("left_curly_bracket", "0", "right_curly_bracket")
            assert replay.step == 12, "a bookmark is a mark to jump to"
            await replay.press("B", "d")
            assert "0:12.0  odd one" not in await replay.press("escape", "B")
    assert [mark.name for mark in Bookmarks(path).all] == ["mark 2"]
    assert path.read_bytes() == before


async def test_a_broken_file_of_bookmarks_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "load.mcap"
    bookmarks_path(path).write_text("not json")
    async with Replay(path=path).run((120, 40)) as replay:
        text = await replay.wait(0.0)
        assert "bookmarks.json cannot be read" in " ".join(text.split())
        assert "for this session only" in await replay.press("b", "enter")
    assert bookmarks_path(path).read_text() == "not json"


@pytest.mark.parametrize("key", ["s", "plus", "minus"])
async def test_nothing_can_be_changed(key: str) -> None:
    async with Replay().run() as replay:
        await replay.wait(5.0)
        assert "this is a recording; nothing can be changed" in await replay.press(key)
        assert replay.app.screen is replay.app.screen_stack[0]


async def test_a_message_goes_by_the_persons_time() -> None:
    """Not by the recording's, which may stand still or run."""
    async with Replay().run() as replay:
        await replay.press("p", "s")
        assert "nothing can be changed" in await replay.wait(1.0)
        assert "nothing can be changed" not in await replay.wait(60.0)


async def test_a_frozen_table_follows_after_a_jump() -> None:
    async with Replay().run() as replay:
        await replay.wait(10.0)
        await replay.press("p", "f", "up")
        text = await replay.press("right_square_bracket")
        assert "FROZEN" not in text
        assert "›    20 PLAIN" in text


async def test_a_jump_before_the_first_step_empties_the_table() -> None:
    async with Replay().run() as replay:
        await replay.wait(10.0)
        text = await replay.press("p", "0")
        assert "10 SPEC" not in text


async def test_help_has_both_kinds_of_keys() -> None:
    async with Replay().run() as replay:
        text = await replay.press("question_mark")
        for words in ("one step back", "slower, faster", "Places: 12s"):
            assert words in text
        text = await replay.press("question_mark")
        assert "quit" in text
        assert "the engine goes on" not in text
        assert "record to a file" not in text
        await replay.press("escape")
        assert len(replay.app.screen_stack) == 1


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 12)])
async def test_replay_stands_on_every_screen(size: tuple[int, int]) -> None:
    async with Replay().run(size) as replay:
        await replay.wait(33.0)
        for number in range(1, 6):
            assert (await replay.press(str(number))).startswith(" REPLAY  playing 1x")


async def test_what_a_cut_recording_lacks_is_on_the_screen(tmp_path: Path) -> None:
    part = write_recording(tmp_path / "load.mcap", told(), finish=False)
    whole = part.read_bytes()
    part.write_bytes(whole[:-40])
    with Recording.open(part) as recording:
        async with Replay(recording, part).run((120, 40)) as replay:
            text = await replay.press("colon", *"end", "enter")
            assert "load.mcap.part: not finished" in text
            assert 30 < replay.step <= 60


async def test_damage_inside_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "load.mcap", told())
    data = bytearray(path.read_bytes())
    with Recording.open(path) as recording:
        middle = recording.index.offsets[len(recording.index) // 2]
    data[middle + 60 : middle + 90] = bytes(30)
    path.write_bytes(data)
    with Recording.open(path) as recording:
        async with Replay(recording, path).run((120, 40)) as replay:
            text = await replay.wait(100.0)
            assert replay.step == 60
            assert "unreadable 1" in text
            (row,) = [row for row in replay.app.state.timeline if isinstance(row, Mark) and row.kind == "malformed"]
            assert "the chunk at byte" in row.text


async def test_an_empty_recording() -> None:
    async with Replay(MemorySession([])).run() as replay:
        assert " REPLAY  END" in await replay.wait(1.0)
        await replay.press("full_stop", "comma", "right_square_bracket", "left_curly_bracket", "p", "0")
        assert replay.app.crash is None


async def test_what_cannot_be_done_in_a_recording_is_not_offered() -> None:
    async with Replay(MemorySession([])).run() as replay:
        text = await replay.wait(1.0)
        assert "no step up to this place of the recording" in text
        assert "q Quit" in text
        assert "s Spec" not in text
        assert "Threshold" not in text.splitlines()[-1]
        text = await replay.press("5")
        assert text.splitlines()[-1].split() == ["c", "Copy", "?", "Help", "q", "Quit"]
        await replay.press("5")


def test_help_of_a_recording_has_no_key_that_steers_or_records() -> None:
    live, replayed = (dict(sections(is_replay=is_replay)) for is_replay in (False, True))
    assert [title for title in live if title not in replayed] == ["Before a change (any of them)"]
    keys = "".join(text for title, text in replayed.items() if title != "Words")
    for words in ("engine goes on", "record", "asks before", "edit", "undo", "held"):
        assert words in "".join(live.values())
        assert words not in keys
    assert set(IN_A_RECORDING) < set(live)


def test_unknown_screens_are_refused_with_the_list() -> None:
    with pytest.raises(UnknownScreen, match="no screen 'nope'; the screens are overview, steps, acceptance"):
        Replay(screen="nope")


def keys_of(kind: type[Widget] | type[AttachApp]) -> set[str]:
    bindings = [binding for binding in kind.__dict__.get("BINDINGS", ()) if isinstance(binding, Binding)]
    return {key for binding in bindings for key in binding.key.split(",")}


async def test_the_players_keys_are_nobody_elses() -> None:
    """Neither the app's nor those of anything on any view; and a live screen has none of them."""
    player = keys_of(ReplayApp)
    assert len(player) == 13
    taken = keys_of(AttachApp)
    async with Replay().run() as replay:
        for widget in replay.app.screen.query("*"):
            for kind in type(widget).__mro__:
                if issubclass(kind, Widget):
                    taken |= keys_of(kind)
    assert len(taken) > 30
    assert not player & taken

"""The decisions view by its keys."""

from __future__ import annotations

import pytest

from probes.subscriber import Restart
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import SIZES, press, settle, story
from workbench.tui.decisions_view import TIME, span_text
from workbench.tui.feed import FeedItem


@pytest.mark.parametrize("size", SIZES)
async def test_snapshot(size: tuple[int, int]) -> None:
    bench = Bench([*story(), made.alert()], view="decisions")
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        golden.check(f"decisions-{size[0]}x{size[1]}", await press(pilot, bench, "down", "down", "down"))


@pytest.mark.parametrize("why", ["with it again", "更多空间"])
async def test_a_space_parts_a_note_from_its_rule(why: str) -> None:
    change = made.knob_change(24, {"threshold": 4}, {"threshold": 6}, why=why)
    bench = Bench([made.hello(), made.step(23), change, made.step(24, knob_epoch=1)], view="decisions")
    async with bench.app.run_test(size=(100, 24)) as pilot:
        await settle(pilot, bench)
        assert f"({why}) ────" in bench.text()


async def test_enter_shows_the_steps_of_the_selected_run() -> None:
    bench = Bench(story(), view="decisions")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, *["down"] * 5)
        assert "›15 - 23" in text
        text = await press(pilot, bench, "enter")
        assert "[2 steps]" in text
        assert "›       15 PLAIN" in text
        assert "FROZEN" in text


async def test_enter_finds_the_step_of_the_right_boot() -> None:
    items: list[FeedItem] = [made.hello(), *(made.step(n, 3) for n in range(1, 9)), Restart(made.BOOT, "c0ffee00")]
    items += [made.hello(boot_id="c0ffee00"), *(made.step(n, 7, boot_id="c0ffee00") for n in range(1, 9))]
    bench = Bench(items, view="decisions")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "end", "enter")
        assert "›        1 SPEC" in text
        assert "step 1 SPEC" in text


async def test_the_selected_run_stays_while_others_come() -> None:
    bench = Bench(story(), view="decisions")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "›31 " in await press(pilot, bench, "down")
        bench.feed_now(made.knob_change(33, {"spec": "auto"}, {"spec": "off"}, epoch=2), made.step(33, 3, knob_epoch=2))
        await pilot.pause()
        text = bench.text()
        assert "›31 " in text
        assert "KNOB: spec auto → off from step 33 by ann" in text
        assert "›33 " in await press(pilot, bench, "home")


async def test_before_the_first_step() -> None:
    bench = Bench([made.hello()], view="decisions")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "no decision yet" in await press(pilot, bench, "enter", "down")


def test_how_long_a_run_took_fits_its_column() -> None:
    assert [span_text(s) for s in (0.44, 12.3, 240, 5400, 90_000)] == ["0.4 s", "12.3 s", "4 min", "90 min", "25 h"]
    assert max(len(span_text(seconds)) for seconds in range(0, 3_000_000, 97)) <= TIME

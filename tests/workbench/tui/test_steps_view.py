"""The steps view by its keys: filter, order, jump, freeze, the large detail."""

from __future__ import annotations

import re
import time

import pytest
from textual.pilot import Pilot

from probes.events import StepEvent
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import SIZES, press, settle, story
from workbench.tui.step_table import StepTable


def rows(text: str) -> list[str]:
    """The lines of the table that are steps: a number, then a mode."""
    return [line for line in text.splitlines() if re.match(r"[› ] *\d+ (SPEC|PLAIN|PREFILL|MIXED) ", line)]


async def type_text(pilot: Pilot[int], bench: Bench, text: str) -> str:
    names = {"=": "equals_sign", ">": "greater_than_sign", "<": "less_than_sign", " ": "space", "_": "underscore"}
    return await press(pilot, bench, *(names.get(letter, letter) for letter in text))


@pytest.mark.parametrize("size", SIZES)
async def test_snapshots(size: tuple[int, int]) -> None:
    bench, name = Bench(story()), f"{size[0]}x{size[1]}"
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        golden.check(f"steps-filter-{name}", await type_text(pilot, bench, "reqs>4 mode=plain"))
        golden.check(f"steps-filter-wrong-{name}", await type_text(pilot, bench, " tempo>3"))
        await press(pilot, bench, "escape")
        golden.check(f"steps-sorted-{name}", await press(pilot, bench, "o", "o"))
        await press(pilot, bench, "f", "up")
        golden.check(f"steps-detail-{name}", await press(pilot, bench, "enter"))


async def test_filter_is_live_and_says_so_until_escape() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        text = await type_text(pilot, bench, "mode=plain")
        assert "FILTER  mode=plain  10 of 31 rows; / changes it, esc clears it" in text
        text = await press(pilot, bench, "enter")
        assert all("PLAIN" in line for line in rows(text))
        assert len(rows(text)) == 10
        bench.feed_now(made.step(33, 9, knob_epoch=1), made.step(34, 3, knob_epoch=1))
        await pilot.pause()
        assert "›       33 PLAIN" in bench.text()
        assert "11 of 33 rows" in bench.text()
        text = await press(pilot, bench, "escape")
        assert "FILTER" not in text
        assert "›       34 SPEC" in text


async def test_escape_while_typing_shows_all_again() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        assert "FILTER" in await type_text(pilot, bench, "mismatch")
        text = await press(pilot, bench, "escape")
        assert "FILTER" not in text
        assert bench.app.query_one(StepTable).has_focus


async def test_letters_that_are_keys_elsewhere_can_be_typed() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "slash", *"qs1rf")
        assert "qs1rf" in text
        assert len(bench.app.screen_stack) == 1
        assert not bench.app._exit
        text = await press(pilot, bench, "plus", "minus", "slash", "question_mark")
        assert "qs1rf+-/?" in text


async def test_a_filter_keeps_the_frozen_row() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "up", "up", "up", "up")
        table = bench.app.query_one(StepTable)
        before = table.entry
        await press(pilot, bench, "slash")
        await type_text(pilot, bench, "mode=spec")
        assert isinstance(before, StepEvent)
        assert table.entry == before
        await press(pilot, bench, "escape")
        assert table.entry == before


async def test_order_freezes_and_f_goes_on_with_time() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "o")
        assert "FROZEN, SORTED by ms, largest first" in text
        assert "ms↓" in text
        text = await press(pilot, bench, "O")
        assert "smallest first" in text
        bench.feed_now(made.step(33, 2, knob_epoch=1))
        await pilot.pause()
        assert "1 newer row; f follows" in bench.text()
        assert " 33 SPEC" not in bench.text()
        text = await press(pilot, bench, "f")
        assert "SORTED" not in text
        assert "›       33 SPEC" in text


async def test_escape_takes_the_order_back_before_the_filter() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        await type_text(pilot, bench, "mode=spec")
        text = await press(pilot, bench, "enter", "o", "o", "o")
        assert "FILTER  mode=spec" in text
        assert "SORTED by reqs" in text
        requests = [int(line.split("SPEC")[1].split()[0]) for line in rows(text)]
        assert requests == sorted(requests, reverse=True)
        text = await press(pilot, bench, "escape")
        assert "SORTED" not in text
        assert "FILTER" in text
        assert "FILTER" not in await press(pilot, bench, "escape")


async def test_jump_by_number_says_when_the_step_is_not_there() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "›    12 SPEC" in await press(pilot, bench, "number_sign", "1", "2", "enter")
        text = await press(pilot, bench, "number_sign", "2", "9", "enter")
        assert "step 29 is not here; 31 is the nearest that is" in text
        assert "›    31 PLAIN" in text
        text = await press(pilot, bench, "number_sign", "x", "enter")
        assert "digits only" in text
        assert "›    31 PLAIN" in await press(pilot, bench, "escape")


async def test_jump_to_what_the_filter_hides() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        await type_text(pilot, bench, "mode=spec")
        text = await press(pilot, bench, "enter", "number_sign", "2", "0", "enter")
        assert "step 20 does not pass the filter; 24 is the nearest that does" in text


async def test_large_detail_scrolls_and_goes_back() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "up", "enter")
        assert "MISMATCH the allocator reserved 10 slots" in text
        assert len(rows(text)) == 3
        assert "publish" in await press(pilot, bench, "pagedown")
        assert len(rows(await press(pilot, bench, "escape"))) > 4


async def test_keys_are_answered_at_once_after_100_000_steps() -> None:
    """B103: a filter and an order over a full history cost less than a person notices; the bound here is generous."""
    bench = Bench([made.hello()])
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        some = [made.step(number, 1 + number % 9) for number in range(5_000)]
        for _ in range(20):
            bench.feed_now(*some)
        await pilot.pause()
        table = bench.app.query_one(StepTable)
        slowest = 0.0
        for keys in (["slash", *"reqs", "equals_sign", "9"], ["enter"], ["o"], ["up"], ["escape"], ["f"]):
            for key in keys:
                began = time.perf_counter()
                await press(pilot, bench, key)
                slowest = max(slowest, time.perf_counter() - began)
        assert len(table.timeline) <= 22_500
        assert slowest < 10.0


async def test_the_story_of_160_against_10_is_one_filter_away() -> None:
    data = {"quantity": "slots", "expected": 10, "expected_by": "a:decide", "found": 160, "found_by": "b:reserve"}
    alert = made.alert("step 33 was not run", code="plan_mismatch", level="error", step=33, data=data)
    again = made.step(33, 10, spec=True, replanned=True, knob_epoch=1)
    bench = Bench([*story(), alert, again, *(made.step(n, 3, knob_epoch=1) for n in range(34, 60))])
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "slash")
        await type_text(pilot, bench, "mismatch")
        text = await press(pilot, bench, "enter", "enter")
        assert len(rows(text)) == 2
        assert "MISMATCH slots: 10 expected by a:decide, 160 found from b:reserve: 1 against 16 a request" in text

"""The knobs view by its keys: edit one or several, for a while, undo, copy."""

from __future__ import annotations

import msgspec
import pytest

from probes.events import KnobEvent
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench, FakeSteering
from tests.workbench.tui.pilots import SIZES, comes, press, settle, story
from workbench.tui.feed import FeedItem


def timed_story() -> list[FeedItem]:
    """The story, with an earlier change, and one that goes back in a quarter of an hour."""
    before = made.knob_change(3, {"draft_sync": "lazy"}, {"draft_sync": "eager"}, epoch=1, who="bob/77", why="compare")
    late = made.knob_change(
        33, {"spec": "auto"}, {"spec": "off"}, epoch=3, revert_at=made.T0 + 903.3, back_to={"spec": "auto"}, why="test"
    )
    rest = story()[1:]
    rest = [
        msgspec.structs.replace(item, knob_epoch=2, seq=2) if isinstance(item, KnobEvent) else item for item in rest
    ]
    return [made.hello(), before, *rest, late]


@pytest.mark.parametrize("size", SIZES)
async def test_snapshots(size: tuple[int, int]) -> None:
    bench, name = Bench(timed_story(), view="knobs"), f"{size[0]}x{size[1]}"
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        golden.check(f"knobs-{name}", await press(pilot, bench, "down", "down"))
        golden.check(f"knobs-edit-{name}", await press(pilot, bench, "enter", "9", "9", "9", "9"))
        golden.check(f"knobs-confirm-{name}", await press(pilot, bench, "backspace", "backspace", "enter", "t", "t"))
        golden.check(f"knobs-held-{name}", await press(pilot, bench, "a"))
        await press(pilot, bench, "x", "home", "enter")
        golden.check(f"knobs-choices-{name}", bench.text())


def dialog_words(text: str) -> str:
    """What stands between the sides of the dialog, as running text."""
    return " ".join(" ".join(line.split("│")[1] for line in text.splitlines() if line.count("│") == 2).split())


async def test_several_knobs_for_a_while_with_a_reason_in_one_change() -> None:
    bench = Bench(story(), FakeSteering(step=40), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "down", "down", "enter", "8", "enter", "a")
        text = await press(pilot, bench, "down", "enter", "2", "enter", "t")
        assert "Change threshold 6 → 8, hysteresis -1 → 2?" in text
        assert "For 5 min; then the engine sets threshold to 6, hysteresis to -1 by itself." in dialog_words(text)
        text = await press(pilot, bench, "w", *"rush", "enter")
        assert "Why: rush" in text
        await press(pilot, bench, "y")
        text = await comes(pilot, bench, "took effect at step 40, for 5 min")
        assert "HELD" not in text
    assert bench.steering.asked == [({"threshold": 8, "hysteresis": 2}, {"threshold": 6, "hysteresis": -1})]
    assert bench.steering.terms == [("rush", 300.0)]


async def test_a_choice_is_picked_from_the_list() -> None:
    bench = Bench(story(), FakeSteering(step=41), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "end", "enter", "down", "enter")
        assert "Change draft_sync lazy → eager?" in text
        await press(pilot, bench, "y")
        await comes(pilot, bench, "draft_sync lazy → eager took effect at step 41")
    assert bench.steering.terms == [("from the attached screen", None)]


async def test_a_number_out_of_range_is_not_taken() -> None:
    bench = Bench(story(), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "down", "down", "enter", *"99999", "enter")
        assert "expected a whole number from 0 to 4096" in dialog_words(text)
        text = await press(pilot, bench, "escape")
        assert "nothing changed" in text
    assert bench.steering.asked == []


async def test_what_the_engine_will_refuse_is_said_and_its_words_are_kept() -> None:
    bench = Bench(story(), FakeSteering(refusal="topk=1 is a chain … (inconsistent)"), view="knobs")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, *["down"] * 5, "enter", "1", "enter")
        assert "The engine will refuse this: topk=1 is a chain" in text
        await press(pilot, bench, "y")
        await comes(pilot, bench, "not changed: topk=1 is a chain … (inconsistent)")


async def test_no_drops_what_was_held() -> None:
    bench = Bench(story(), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "HELD" in await press(pilot, bench, "down", "down", "enter", "8", "enter", "a")
        assert "HELD" not in await press(pilot, bench, "down", "enter", "2", "enter", "n")
        assert "HELD" in await press(pilot, bench, "up", "enter", "8", "enter", "a")
        assert "HELD" not in await press(pilot, bench, "x")
    assert bench.steering.asked == []


async def test_undo_of_the_newest_change_and_redo() -> None:
    bench = Bench(story(), FakeSteering(step=50), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "u")
        assert "Change threshold 6 → 4?" in text
        assert "Undoes the change from step 24 by ann." in text
        await press(pilot, bench, "y")
        await comes(pilot, bench, "threshold 6 → 4 took effect at step 50")
        bench.feed_now(made.knob_change(50, {"threshold": 6}, {"threshold": 4}, epoch=2, who="me/1"))
        assert "Change threshold 4 → 6?" in await press(pilot, bench, "u")
    assert bench.steering.asked == [({"threshold": 4}, {"threshold": 6})]
    assert bench.steering.terms == [("undo of the change at step 24", None)]


async def test_undo_of_a_selected_change_that_no_longer_stands_says_why() -> None:
    later = made.knob_change(33, {"threshold": 6}, {"threshold": 2}, epoch=2, who="bob/77")
    bench = Bench([*story(), later], view="knobs")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "tab", "down", "u")
        assert "cannot undo threshold 4 → 6: threshold is 2 now, not 6, set by bob/77 at step 33" in text
        assert "Change threshold 2 → 6?" in await press(pilot, bench, "up", "u")
    assert bench.steering.asked == []


async def test_copy_shows_the_command_and_puts_it_on_the_clipboard() -> None:
    bench = Bench(story(), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "tab", "c")
        command = "specwb set demo threshold=6 --why 'more room'"
        assert f"copied: {command}" in text
        assert bench.app.clipboard == command
        text = await press(pilot, bench, "tab", "c")
        assert "copied: specwb set demo spec=auto policy=threshold threshold=6 hysteresis=-1" in text
        assert "steps=2 topk=4 draft_tokens=16 draft_sync=lazy" in text
        await pilot.resize_terminal(120, 40)
        assert f"copied (if the terminal allows it): {command}" in await press(pilot, bench, "tab", "c")


async def test_an_answer_to_a_key_goes_with_its_view() -> None:
    bench = Bench([made.hello(), made.step(1)], view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        for key, answer in (("u", "no knob change is known, so there is nothing to undo"), ("c", "copied: specwb")):
            assert answer in await press(pilot, bench, key)
            assert answer in await press(pilot, bench, "5"), "the same view"
            assert answer not in await press(pilot, bench, "1")
            assert answer not in await press(pilot, bench, "5")


async def test_what_became_of_a_change_stays_on_every_view() -> None:
    bench = Bench(story(), FakeSteering(step=50), view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "u", "y")
        await comes(pilot, bench, "took effect at step 50")
        assert "took effect at step 50" in await press(pilot, bench, "1")


async def test_a_knob_of_a_newer_engine_is_shown_and_left_alone() -> None:
    bench = Bench([made.hello(knobs=made.knobs() | {"aura": 7})], view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "end", "enter")
        assert "aura is a knob of a newer engine" in text


async def test_before_the_engine_has_said_its_knobs() -> None:
    bench = Bench(view="knobs")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, "u", "c", "enter")
        assert "the engine has not said its knobs yet" in text

"""The screen on a fake feed and a fake clock: what it shows, and what its keys do."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList

from probes.subscriber import Malformed, Restart
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench, FakeSteering
from tests.workbench.tui.pilots import SIZES, comes, settle, story
from workbench.tui.detail_pane import DetailPane
from workbench.tui.step_table import StepTable


@pytest.mark.parametrize("size", SIZES)
async def test_snapshot_of_the_story(size: tuple[int, int]) -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        golden.check(f"attach-story-{size[0]}x{size[1]}", bench.text())


@pytest.mark.parametrize("size", SIZES)
async def test_snapshot_with_cjk_and_emoji(size: tuple[int, int]) -> None:
    """B114."""
    model = {"name": "日本語モデル👩‍👩‍👧", "dtype": "float32", "device": "cpu"}
    steps = [made.step(1, 3, reason_detail="負荷が低い ❤️ ok"), made.step(2, 9, reason_detail="שלום e\u0301 \ufffd")]
    bench = Bench([made.hello(model=model), *steps])
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        golden.check(f"attach-wide-cells-{size[0]}x{size[1]}", bench.text())


async def test_snapshot_wide_puts_details_beside() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(200, 50)) as pilot:
        await settle(pilot, bench)
        golden.check("attach-story-200x50", bench.text())
        table, detail = bench.app.query_one(StepTable).region, bench.app.query_one(DetailPane).region
        assert (table.width, table.right, detail.right) == (136, detail.x, 200)


@pytest.mark.parametrize("size", SIZES)
async def test_snapshot_speculation_off_for_a_minute(size: tuple[int, int]) -> None:
    """B61, B66: no data with its age, and why the draft does not work."""
    bench = Bench([made.hello(knobs=made.knobs(spec="off")), *(made.step(n, 3) for n in range(1, 9))])
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        for second in range(60):
            bench.clock.advance(1.0)
            off = made.step(
                9 + second, 3, t=made.T0 + 1.8 + second, spec=False, reason="spec_off", reason_detail="by hand"
            )
            bench.feed_now(off)
        await settle(pilot, bench)
        golden.check(f"attach-spec-off-{size[0]}x{size[1]}", bench.text())


@pytest.mark.parametrize("size", SIZES)
async def test_snapshots_of_the_dialogs(size: tuple[int, int]) -> None:
    bench = Bench(story())
    name = f"{size[0]}x{size[1]}"
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        await pilot.press("s")
        golden.check(f"attach-chooser-{name}", bench.text())
        await pilot.press("3")
        golden.check(f"attach-confirm-off-{name}", bench.text())
        await pilot.press("escape", "plus", "plus")
        golden.check(f"attach-confirm-threshold-{name}", bench.text())
        await pilot.press("n", "question_mark")
        golden.check(f"attach-help-{name}", bench.text())


async def test_before_the_first_event() -> None:
    bench = Bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("s")
        assert "the engine has not said its knobs yet" in bench.text()
        assert "WAITING" in bench.text()


async def test_speculation_off_with_confirmation() -> None:
    bench = Bench(story(), FakeSteering(step=33))
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("s", "3")
        assert bench.steering.asked == []
        await pilot.press("y")
        await comes(pilot, bench, "spec auto → off took effect at step 33")
    assert bench.steering.asked == [({"spec": "off"}, {"spec": "auto"})]


async def test_threshold_moves_by_the_keys_and_expects_the_old_value() -> None:
    bench = Bench(story(), FakeSteering(step=40))
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("plus", "plus", "plus", "minus", "enter")
        await comes(pilot, bench, "threshold 6 → 8 took effect at step 40")
    assert bench.steering.asked == [({"threshold": 8}, {"threshold": 6})]


@pytest.mark.parametrize("keys", [("s", "escape"), ("s", "3", "n"), ("s", "3", "escape"), ("minus", "n")])
async def test_no_means_no(keys: tuple[str, ...]) -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press(*keys)
        await pilot.pause()
        assert bench.app.screen is bench.app.screen_stack[0]
    assert bench.steering.asked == []


async def test_what_is_so_already_is_not_asked_for() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("s", "1")
        assert "Nothing to change" in bench.text()
        await pilot.press("y")
        await pilot.pause()
    assert bench.steering.asked == []


async def test_a_second_answer_typed_ahead_is_ignored() -> None:
    """Two keys that come before the dialog is gone: it closes once, and asks for confirmation once."""
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("s")
        options = bench.app.screen.query_one(OptionList)
        options.action_select()
        options.action_select()
        await pilot.pause()
        assert [type(screen).__name__ for screen in bench.app.screen_stack] == ["Screen", "ConfirmScreen"]
        await pilot.press("n")
        assert len(bench.app.screen_stack) == 1
    assert bench.app.crash is None


async def test_refusal_is_shown() -> None:
    bench = Bench(story(), FakeSteering(refusal="spec is 'off', not 'auto'; last changed by ann (conflict)"))
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("s", "3", "y")
        await comes(pilot, bench, "not changed: spec is 'off', not 'auto'; last changed by ann")


async def test_freeze_holds_the_rows_and_counts_the_newer() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("f")
        before = [line for line in bench.text().splitlines() if "PLAIN" in line or "SPEC" in line][2:]
        bench.feed_now(*(made.step(number, 2, knob_epoch=1) for number in range(33, 53)))
        after = await comes(pilot, bench, "FROZEN  20 newer rows; f follows again")
        assert before[-1] in after
        await pilot.press("f")
        await pilot.pause()
        assert "FROZEN" not in bench.text()
        assert "›    52 SPEC" in bench.text()


async def test_arrows_select_a_row_and_the_details_follow() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await pilot.press("up")
        await pilot.pause()
        text = bench.text()
        assert "›    31 PLAIN" in text
        assert " step 31 PLAIN" in text
        assert "MISMATCH the allocator reserved 10 slots" in text
        await pilot.press("home")
        await pilot.pause()
        assert "›     1 PREFILL" in bench.text()
        await pilot.press("end")
        await pilot.pause()
        assert bench.app.query_one(StepTable).is_following


async def test_resize_keeps_the_newest_row_in_view() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        for size in [(80, 24), (200, 50), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await settle(pilot, bench)
            assert "32 SPEC" in bench.text()
            assert len(bench.text().splitlines()) == size[1]


@pytest.mark.parametrize(
    "keys", [("q",), ("ctrl+q",), ("ctrl+c", "ctrl+c"), ("s", "ctrl+c"), ("question_mark", "ctrl+q")]
)
async def test_quit_keys(keys: tuple[str, ...]) -> None:
    """B109: q, ctrl-q and ctrl-c quit, the last two from a dialog too; the footer says how."""
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "q Quit" in bench.text()
        await pilot.press(*keys)
        await pilot.pause()
        assert not bench.app.is_running or bench.app._exit
    assert bench.app.return_value == 0
    assert not bench.feed.is_open


async def test_malformed_gap_and_restart_do_not_end_it() -> None:
    """B116, B89: they are rows."""
    items = [*story(), Malformed("payload of 3 bytes is not a step event", 3), Restart("b7f3a9c2", "c0ffee00")]
    bench = Bench([*items, made.step(1, 2, boot_id="c0ffee00")])
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        text = bench.text()
        assert "UNREADABLE: payload of 3 bytes" in text
        assert "RESTART: the engine restarted, boot b7f3a9c2 → c0ffee00" in text
        assert "unreadable 1" in text
        assert "›        1 SPEC" in text


async def test_state_is_readable_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """B108: NO_COLOR leaves no colour in any cell, and the words are the same."""
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Bench(story())
    async with plain.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, plain)
        assert plain.app.no_color
        words = plain.text()
    monkeypatch.delenv("NO_COLOR")
    colour = Bench(story())
    async with colour.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, colour)
        assert colour.text() == words
    for word in ("SPEC", "PLAIN", "GAP", "LIVE", "lost 3", "10!", "›"):
        assert word in words


async def test_flood_is_painted_at_the_pace_of_the_screen() -> None:
    """B102, B103: a burst of 20,000 steps is one paint, and the newest numbers are final."""
    bench = Bench([made.hello()])
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        bench.feed_now(*(made.step(number, 2) for number in range(1, 20_001)))
        await pilot.pause()
        assert "20000 SPEC" in bench.text()
        table = bench.app.query_one(StepTable)
        drawn: list[int] = []
        render_line = table.render_line
        table.render_line = lambda y: drawn.append(y) or render_line(y)  # type: ignore[func-returns-value,method-assign]
        bench.feed_now(made.step(20_001, 2))
        await pilot.pause()
        assert drawn, "the new row was painted"
        assert len(drawn) <= 2 * table.size.height, "no more rows are drawn than are on the screen"


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
async def test_a_view_has_the_keys_at_once(number: int) -> None:
    """A key typed right behind the view's number belongs to that view, however busy the screen is."""
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        bench.app.action_view(6 - number)
        await pilot.pause()
        bench.app.action_view(number)
        view = bench.app._views[number - 1]
        focused = bench.app.screen.focused
        assert focused is not None
        assert view in focused.ancestors_with_self

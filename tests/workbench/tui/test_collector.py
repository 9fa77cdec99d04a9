"""What the garbage collector has to look through does not grow, and it does not run where it would be in the way."""

from __future__ import annotations

import gc

from textual._styles_cache import StylesCache

from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import settle, story
from workbench.tui.collector import collector_paused, settle_heap
from workbench.tui.feed import FeedItem


def test_the_collector_runs_again_after_a_pause() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_pause_within_a_pause_ends_with_the_outer_one() -> None:
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()


def test_what_stands_is_not_looked_through_again() -> None:
    standing = [object() for _ in range(2)]
    try:
        settle_heap()
        assert not any(known is standing for known in gc.get_objects())
    finally:
        gc.unfreeze()


async def test_events_are_taken_in_without_the_collector() -> None:
    bench = Bench()
    seen: list[bool] = []
    take = bench.app.state.apply

    def apply(item: FeedItem, now: float) -> None:
        seen.append(gc.isenabled())
        take(item, now)

    bench.app.state.apply = apply  # type: ignore[method-assign]
    async with bench.app.run_test():
        bench.feed_now(*story())
    assert seen
    assert not any(seen)


async def test_ready_is_told_once() -> None:
    bench = Bench(story())
    told: list[str] = []
    bench.app.when_ready = lambda: told.append(bench.text())
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        await pilot.resize_terminal(80, 24)
        await settle(pilot, bench)
    assert len(told) == 1
    assert "demo" in told[0]


async def test_a_closed_dialog_leaves_no_lines_behind() -> None:
    """Textual's memory of colours would keep the drawn lines of a thousand closed widgets."""
    bench = Bench(story())
    async with bench.app.run_test(size=(120, 40)) as pilot:
        counts = []
        for _ in range(3):
            await pilot.press("question_mark")
            await pilot.press("escape")
            await settle(pilot, bench)
            gc.collect()
            counts.append(sum(type(known) is StylesCache for known in gc.get_objects()))
    assert counts[0] == counts[-1]

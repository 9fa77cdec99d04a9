"""The line of keys says what the keys of the moment do."""

from __future__ import annotations

import gc

from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import settle
from workbench.tui.key_line import KeyLine
from workbench.tui.line_panel import RoleStyles


async def test_keys_follow_the_view() -> None:
    bench = Bench([made.hello(), made.step(1)], view="overview")
    async with bench.app.run_test(size=(120, 24)) as pilot:
        await settle(pilot, bench)
        keys = bench.app.query_one(KeyLine)
        assert keys.text.startswith(" s Spec")
        assert "q Quit" in keys.text
        assert "Filter" not in keys.text
        await pilot.press("2")
        await settle(pilot, bench)
        assert "/ Filter" in keys.text
        assert keys.text.strip() in bench.text().splitlines()[-1]


async def test_a_click_on_a_key_presses_it() -> None:
    bench = Bench([made.hello(), made.step(1)], view="overview")
    async with bench.app.run_test(size=(120, 24)) as pilot:
        await settle(pilot, bench)
        keys = bench.app.query_one(KeyLine)
        await pilot.click(KeyLine, offset=(keys.text.index("? Help") + 1, 0))
        await pilot.pause()
        assert type(bench.app.screen).__name__ == "HelpScreen"
        await pilot.press("escape")
        await pilot.click(KeyLine, offset=(110, 0))
        await pilot.pause()
        assert len(bench.app.screen_stack) == 1, "beside the keys nothing happens"


async def test_views_and_dialogs_leave_nothing_behind() -> None:
    """B104: an hour of switching views and opening dialogs leaves memory as it was."""
    bench = Bench([made.hello(), made.step(1)])
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        before = sum(issubclass(type(thing), RoleStyles) for thing in gc.get_objects())
        for key in ("1", "2", "3", "question_mark", "escape") * 4:
            await pilot.press(key)
            await pilot.pause()
        gc.collect()
        assert sum(issubclass(type(thing), RoleStyles) for thing in gc.get_objects()) <= before

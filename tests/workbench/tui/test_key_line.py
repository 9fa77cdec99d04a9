"""The line of keys forgets what it showed before."""

from __future__ import annotations

import gc

from textual.widgets._footer import FooterKey

from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import settle


async def test_keys_of_the_past_are_not_kept() -> None:
    """B104: an hour of switching views and opening dialogs leaves memory as it was."""
    bench = Bench([made.hello(), made.step(1)])
    async with bench.app.run_test(size=(80, 24)) as pilot:
        for key in ("1", "2", "3", "question_mark", "escape") * 6:
            await pilot.press(key)
            await pilot.pause()
        await settle(pilot, bench)
        shown = len(bench.app.screen.query(FooterKey))
        gc.collect()
        alive = sum(type(thing) is FooterKey for thing in gc.get_objects())
        assert 0 < shown <= alive <= 3 * shown, "each of 30 keys made new ones"

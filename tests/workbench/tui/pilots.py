"""What the tests of the screen share: a story to show, and patience."""

from __future__ import annotations

import asyncio

import pytest
from textual.pilot import Pilot

from probes.subscriber import Gap
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from workbench.tui.feed import FeedItem
from workbench.tui.key_line import KeyLine

SIZES = [(80, 24), (120, 40)]


def story() -> list[FeedItem]:
    """A load that crosses the threshold, a knob change, a gap, a step whose counts differ."""
    items: list[FeedItem] = [made.hello(), made.prefill(1), made.prefill(2, 137)]
    items += [made.step(number, min(number // 3, 7)) for number in range(3, 24)]
    items += [made.knob_change(24, {"threshold": 4}, {"threshold": 6}, why="more room")]
    items += [made.step(number, 5, spec=True, knob_epoch=1) for number in range(24, 28)]
    items += [Gap("step", 28, 30, recovered=False), made.step(31, 10, slots_written=160, knob_epoch=1)]
    items += [made.step(32, 8, widths={"16": 7, "1": 3}, spec=True, knob_epoch=1)]
    return items


async def settle(pilot: Pilot[int], bench: Bench) -> None:
    """Let the screen take in and paint what is there."""
    bench.app.tick()
    async with asyncio.timeout(30):  # the keys come when Textual gets to it, on a busy machine after a pause or two
        await pilot.pause()
        while not bench.app.screen_stack[0].query_one(KeyLine).text:
            await pilot.pause(0.01)
    await pilot.pause()


async def press(pilot: Pilot[int], bench: Bench, *keys: str) -> str:
    """Press keys; the screen when what they did is painted."""
    await pilot.press(*keys)
    bench.app.tick()
    await pilot.pause()
    return bench.text()


async def comes(pilot: Pilot[int], bench: Bench, text: str) -> str:
    """Wait until a text is on the screen, as what a thread of its own does may take its time."""
    for _ in range(600):
        bench.app.tick()
        await pilot.pause(0.05)
        if text in bench.text():
            return bench.text()
    pytest.fail(f"{text!r} never came:\n{bench.text()}")

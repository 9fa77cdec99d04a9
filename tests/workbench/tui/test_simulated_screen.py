"""The word SIMULATED stands on every screen of an engine whose figures are not a model's."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from probes.subscriber import Restart
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import press, settle
from workbench.tui.feed import FeedItem, Gone
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import status_lines

SIZES = [(40, 12), (80, 24), (120, 40), (200, 50)]
TITLES = ("overview", "steps", "acceptance", "decisions", "knobs")


def session(**hello: Any) -> list[FeedItem]:
    given = hello or {"config": made.SIMULATED}
    return [made.gpu_hello(**given), *(made.gpu_step(number) for number in range(1, 40))]


def notes(*items: FeedItem, width: int = 80) -> str:
    state = SessionState()
    for item in items:
        state.apply(item, 1000.0)
    return "".join(text for text, _ in status_lines(state, "demo", 1000.0, width)[3])


@pytest.mark.parametrize("size", SIZES)
async def test_all_five_views_at_every_size(size: tuple[int, int]) -> None:
    bench = Bench(session(), view="overview")
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        for key, title in enumerate(TITLES, 1):
            text = await press(pilot, bench, str(key))
            assert "SIMULATED" in text, f"{title} at {size}"


@pytest.mark.parametrize("keys", [("question_mark",), ("s",), ("plus",), ("5", "enter")])
async def test_a_dialog_that_covers_the_status_lines_says_it_too(keys: tuple[str, ...]) -> None:
    bench = Bench(session(), view="overview")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        text = await press(pilot, bench, *keys)
        assert len(bench.app.screen_stack) > 1
        assert any("SIMULATED" in line and "╰" in line for line in text.splitlines()), "in the box's own frame"


async def test_a_real_engine_never_says_it() -> None:
    bench = Bench([made.hello(), *(made.step(number) for number in range(1, 20))], view="overview")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        for keys in ("1", "2", "3", "4", "5", "s"):
            assert "SIMULATED" not in await press(pilot, bench, keys)


@pytest.mark.parametrize(
    "hello", [{"config": made.SIMULATED}, {"simulated": True}, {"config": {"model": "shape:llama-3.1-8b"}}]
)
async def test_whichever_way_the_engine_says_it(hello: dict[str, Any]) -> None:
    bench = Bench(session(**hello), view="steps")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "SIMULATED" in bench.text()


def test_what_is_simulated_is_said_where_there_is_room() -> None:
    line = notes(*session(), width=120)
    assert line.startswith(f" SIMULATED   {made.SIMULATION}")


def test_a_long_alert_leaves_the_word_where_it_is_and_is_cut_itself() -> None:
    for width in (40, 80, 120):
        line = notes(*session(), made.alert("acceptance " * 20), width=width)
        assert line.startswith(" SIMULATED   WARNING acceptance")
        assert cell_len(line) <= width


def test_a_steps_flag_is_enough_and_holds_for_the_boot() -> None:
    steps = [made.step(1, simulated=True), made.step(2)]
    assert "SIMULATED" in notes(made.hello(), *steps)
    assert "acceptance or weights are not real" in notes(made.hello(), *steps)
    other = made.hello(boot_id="c0ffee01")
    assert "SIMULATED" not in notes(made.hello(), *steps, Restart(made.BOOT, "c0ffee01"), other)


def test_an_engine_that_is_gone_was_simulated_all_the_same() -> None:
    assert "SIMULATED" in notes(*session(), Gone("process 7 has ended"))

"""An engine on a GPU on the screen: idle share, graph misses, padding and both clocks. Nothing of it without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from probes.events import KvUse
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import press, settle
from workbench.tui.feed import FeedItem
from workbench.tui.gpu_lines import gpu_lines
from workbench.tui.overview_lines import overview_lines
from workbench.tui.plot import BLOCKS
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import status_lines

SIZES = [(80, 24), (120, 40), (200, 50)]


def minutes() -> list[FeedItem]:
    """An overlapped engine under a rising load: 2,000 steps, a few without their graph."""
    knobs = made.knobs(threshold=64, steps=3, topk=1, draft_tokens=4)
    items: list[FeedItem] = [made.gpu_hello(knobs=knobs)]
    misses = 2
    for number in range(1, 2001):
        requests = 4 if number < 600 else 10 if number < 1400 else 60
        missed = number in (601, 1401, 1960)
        misses += missed
        used = 128 * requests
        changes: dict[str, Any] = {
            "t": made.T0 + number * 0.05,
            "round_us": 50_000,
            "reason_detail": f"{requests} decode requests <= threshold 64",
            "kv": {pool: KvUse(used=used, total=60_000) for pool in ("target", "draft")},
            "graph_misses": misses,
            "graph_hit": not missed,
        }
        items.append(made.gpu_step(number, requests, **changes))
    return items


def state_of(items: list[FeedItem]) -> SessionState:
    state = SessionState()
    for item in items:
        state.apply(item, 1000.0)
    return state


def texts(lines: Any) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def overview(items: list[FeedItem], width: int) -> str:
    return "\n".join(texts(overview_lines(state_of(items), 1000.0, width, 17, BLOCKS)))


@pytest.mark.parametrize("size", SIZES)
async def test_snapshots(size: tuple[int, int]) -> None:
    bench, name = Bench(minutes(), view="overview"), f"{size[0]}x{size[1]}"
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        golden.check(f"gpu-overview-{name}", bench.text())
        await press(pilot, bench, "2")
        golden.check(f"gpu-steps-detail-{name}", await press(pilot, bench, "enter"))


def test_the_overview_says_idle_and_misses_since_the_start_and_lately() -> None:
    wide = overview(minutes(), 120)
    assert "GPU idle 1.2% between steps (last 10 s, by CUDA events)" in wide
    assert "graph misses 5 since start, 2 in the last minute" in wide
    assert "NVIDIA H200  overlap scheduler" in overview(minutes(), 150)
    narrow = overview(minutes(), 80)
    assert "GPU idle 1.2%  graph misses 5 since start, 2 in the last min  NVIDIA H200" in narrow


def test_what_the_engine_does_not_count_is_of_the_steps_that_were_seen() -> None:
    items: list[FeedItem] = [made.gpu_hello(), made.gpu_step(700, graph_hit=False, graph_misses=None)]
    assert "graph misses 1 of 1 steps seen, 1 in the last min" in overview(items, 80)


def test_without_a_gpu_there_is_no_word_of_one() -> None:
    items: list[FeedItem] = [made.hello(), *(made.step(number) for number in range(1, 30))]
    state = state_of(items)
    assert gpu_lines(state, 1000.0, 120) == []
    assert not any("GPU" in line or "graph" in line for line in texts(status_lines(state, "demo", 1000.0, 120)))


def test_the_device_alone_makes_a_gpu_engine_before_its_first_step() -> None:
    assert "GPU idle n/a  NVIDIA H200  overlap" in overview([made.gpu_hello()], 80)
    assert state_of([made.gpu_hello()]).scheduler == "overlap"


@pytest.mark.parametrize("width", [80, 120])
def test_the_status_lines_say_scheduler_device_and_idle(width: int) -> None:
    lines = texts(status_lines(state_of(minutes()), "demo", 1000.0, width))
    assert "cuda" in lines[0]
    assert "overlap" in lines[0]
    assert "GPU idle 1.2%" in lines[2]
    assert all(cell_len(line) <= width for line in lines)


def test_fresh_misses_are_on_the_status_lines_old_ones_are_not() -> None:
    fresh = texts(status_lines(state_of(minutes()), "demo", 1000.0, 120))[2]
    assert "graph miss 2/min" in fresh
    late = texts(status_lines(state_of(minutes()), "demo", 1002.0 + 60, 120))[2]
    assert "graph miss" not in late


def test_a_restart_forgets_what_the_boot_before_missed() -> None:
    from probes.subscriber import Restart

    items = [*minutes(), Restart(made.BOOT, "c0ffee01"), made.gpu_hello(boot_id="c0ffee01")]
    assert "graph misses" not in overview(items, 120)

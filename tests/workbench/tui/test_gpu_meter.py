"""The GPU's idle share over the last seconds, and the graphs that were missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workbench import made_events as made
from workbench.tui import gpu_meter
from workbench.tui.gpu_meter import GpuMeter, GpuReading


def read(*steps: Any, now: float = made.T0) -> GpuReading:
    meter = GpuMeter()
    for step in steps:
        meter.add(step)
    return meter.read(now)


def at(second: float, number: int = 1, **changes: Any) -> Any:
    return made.gpu_step(number, t=made.T0 + second, **({"graph_misses": None} | changes))


def test_the_share_is_of_the_window_alone() -> None:
    old, new = at(0, gpu_us={"idle": 900, "run": 100}), at(11, 2, gpu_us={"idle": 10, "run": 90})
    assert read(old, new, now=made.T0 + 11).idle == pytest.approx(0.1)
    assert read(old, now=made.T0 + 5).idle == pytest.approx(0.9)
    assert read(old, new, now=made.T0 + 60).idle is None, "nothing ran since"


def test_no_step_with_a_measured_wait_is_no_share() -> None:
    assert read(made.step(1)).idle is None
    assert read(at(0, round_us=0)).idle is None


def test_misses_by_the_engines_own_count() -> None:
    """A screen that opened late has not seen those of the start."""
    reading = read(at(0, 700, graph_misses=14), at(1, 701, graph_misses=15, graph_hit=False))
    assert (reading.misses, reading.recent, reading.is_since_start) == (15, 1, True)


def test_misses_that_only_this_screen_counted() -> None:
    late = read(at(0, 700), at(1, 701, graph_hit=False))
    assert (late.misses, late.looked, late.is_since_start) == (1, 2, False)
    whole = read(at(0, 1), at(1, 2, graph_hit=False))
    assert whole.is_since_start
    holed = read(at(0, 1), at(1, 3))
    assert not holed.is_since_start


def test_the_last_minute_ends() -> None:
    steps = [at(0, 1, graph_hit=False), at(50, 2, graph_hit=False)]
    assert read(*steps, now=made.T0 + 55).recent == 2
    assert read(*steps, now=made.T0 + 61).recent == 1
    assert read(*steps, now=made.T0 + 200).recent == 0


def test_prompts_look_for_no_graph() -> None:
    reading = read(made.prefill(1, scheduler="overlap", gpu_us={"prefill": 100}))
    assert (reading.looked, reading.misses) == (0, 0)


def test_a_flood_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """B104."""
    monkeypatch.setattr(gpu_meter, "MOST", 100)
    meter = GpuMeter()
    for number in range(1, 1000):
        meter.add(at(0, number))
    assert len(meter._shares) <= 100
    assert meter.read(made.T0).idle == pytest.approx(72 / 5842)

"""The GPU's own time, and the time it waits."""

from __future__ import annotations

import pytest

from probes.gpu_time import busy_us, idle_share, idle_us, share_of
from tests.workbench import made_events as made


def test_idle_is_no_stage() -> None:
    step = made.gpu_step(1, gpu_us={"idle": 100, "run": 700, "sync": 200})
    assert busy_us(step) == 900
    assert idle_us(step) == 100
    assert idle_share(step) == pytest.approx(0.1)


def test_before_there_was_work_the_gpu_waited_for_nobody() -> None:
    step = made.gpu_step(1, gpu_us={"idle": 9_000_000, "run": 900}, round_us=0)
    assert idle_us(step) is None
    assert idle_share(step) is None


def test_without_a_gpu_nothing_is_measured() -> None:
    assert idle_share(made.step(1)) is None
    assert busy_us(made.step(1)) == 0


def test_the_first_step_of_a_boot_has_no_step_before_it() -> None:
    assert idle_share(made.gpu_step(1, gpu_us={"run": 900})) is None


def test_over_several_steps_it_is_a_ratio_of_sums() -> None:
    steps = [made.gpu_step(1, gpu_us={"idle": 100, "run": 100}), made.gpu_step(2, gpu_us={"idle": 0, "run": 800})]
    assert share_of(steps).value == pytest.approx(0.1), "not the mean of 0.5 and 0"
    assert share_of([]).value is None

"""Bars: reached, missed, not resolved, not measured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.gpu_check.bars import CLIENTS, LEAST_RATE, VLLM, Verdict, best_threshold, plain_floor, rates, verdicts
from engine.gpu_check.check_file import Cell, CheckFile
from tests.engine.gpu_check.results import column, full_results, pair


def verdict(file: CheckFile, beginning: str) -> Verdict:
    (found,) = [entry for entry in verdicts(file) if entry.bar.startswith(beginning)]
    return found


def with_cell(name: str, value: Any) -> CheckFile:
    file = full_results()
    file.cells[name] = Cell(value=value)
    return file


def test_every_bar_can_be_reached() -> None:
    assert {entry.word for entry in verdicts(full_results())} == {"reached"}


def test_nothing_measured_reaches_nothing() -> None:
    empty = CheckFile(sizes=full_results().sizes)
    assert {entry.word for entry in verdicts(empty)} == {"not measured"}


def test_every_column_of_vllms_table_has_a_rate_for_every_load() -> None:
    assert set(LEAST_RATE) | {"dynamic", "off"} == set(VLLM)
    assert {len(each) for each in (*LEAST_RATE.values(), *VLLM.values())} == {len(CLIENTS)}


def test_a_rate_below_its_bar_is_missed() -> None:
    file = with_cell("sweep/250/eagle3", column(14_999.0))
    assert verdict(file, "eagle3, 250 clients").word == "missed"
    assert verdict(file, "eagle3, 128 clients").word == "reached"


def test_plain_is_held_to_the_floor_of_the_same_run() -> None:
    file = full_results()
    floor = plain_floor(file, 16)
    assert floor == pytest.approx(3000.0 * 1.04)
    file.cells["floor/step/16x1"] = Cell(value={"ms": file.value("floor/step/16x1")["ms"] * 0.9})
    assert verdict(file, "plain, 16 clients: 92%").word == "missed"


@pytest.mark.parametrize(("high", "low", "word"), [(0.985, 0.975, "missed"), (1.03, 0.97, "not resolved")])
def test_a_ratio_needs_a_narrow_interval_that_reaches_the_bar(high: float, low: float, word: str) -> None:
    value = pair(column(1.0), column(1.0))
    value["ratio"] = {"median": (high + low) / 2, "low": low, "high": high, "pairs": 7}
    file = with_cell("sweep/64/off over plain", value)
    assert verdict(file, "off with the head / without, 64 clients").word == word


def test_threshold_is_compared_with_the_side_that_it_chose() -> None:
    file = full_results()
    assert "threshold / eagle3, 16 clients: 0.98" in [entry.bar for entry in verdicts(file)]
    assert "threshold / off, 64 clients: 0.98" in [entry.bar for entry in verdicts(file)]


def test_the_eagle_column_comes_from_the_pairs_where_the_threshold_chose_it() -> None:
    assert {n: rates(full_results(), n)["eagle3"]["rate"] for n in (1, 250)} == {1: 440.0, 250: 15100.0}


@pytest.mark.parametrize(
    ("more", "word"),
    [({"excused": 61}, "reached"), ({"excused": 62}, "missed"), ({"decided": 1}, "missed")],
)
def test_at_most_three_percent_may_be_near_ties_and_nothing_else_may_differ(more: dict[str, int], word: str) -> None:
    value = {**full_results().value("exact/bfloat16 overlap, off"), **more}
    file = with_cell("exact/bfloat16 overlap, off", value)
    assert verdict(file, "bfloat16 overlap, off").word == word


@pytest.mark.parametrize(
    ("cell", "value", "bar"),
    [
        ("sanitizer/graphs", {"errors": 3, "words": []}, "compute-sanitizer"),
        ("tests/test_bus", {"passed": 3, "failed": 1, "skipped": 0}, "tests/gpu"),
        ("tests/test_engine", {"passed": 0, "failed": 0, "skipped": 9}, "tests/gpu"),
        (
            "sweep/250/off over plain",
            pair(column(15500.0), column(15600.0, idle=0.031)),
            "plain, 250 clients: GPU idle",
        ),
    ],
)
def test_other_bars_can_be_missed(cell: str, value: dict[str, Any], bar: str) -> None:
    assert verdict(with_cell(cell, value), bar).word == "missed"


def test_a_file_of_tests_that_did_not_run_is_missed() -> None:
    file = full_results()
    file.cells["tests/test_bus"] = Cell(error="TimeoutExpired: …")
    assert verdict(file, "tests/gpu").word == "missed"


def test_files_of_tests_that_the_budget_left_out_are_named() -> None:
    passed = {"passed": 3, "failed": 0, "skipped": 0, "files": ["test_engine", "test_launch", "test_bus"]}
    found = verdict(with_cell("tests/test_bus", passed), "tests/gpu")
    assert (found.word, found.got) == ("not measured", "43 passed, 0 failed, 1 skipped; not run: test_launch")


def test_a_file_that_broke_counts_also_where_another_was_left_out() -> None:
    passed = {"passed": 3, "failed": 0, "skipped": 0, "files": ["test_engine", "test_launch", "test_bus"]}
    file = with_cell("tests/test_bus", passed)
    file.cells["tests/test_engine"] = Cell(error="TimeoutExpired: …")
    assert verdict(file, "tests/gpu").word == "missed"


def test_idle_that_nobody_measured_is_not_reached() -> None:
    file = with_cell("sweep/250/off over plain", pair(column(15500.0), column(15600.0, idle=None)))
    assert verdict(file, "plain, 250 clients: GPU idle").word == "not measured"


def test_rates_of_quick_runs_are_not_judged() -> None:
    file = full_results()
    file.sizes = {**file.sizes, "name": "quick"}
    assert not [entry for entry in verdicts(file) if "tokens/s" in entry.bar]


def test_the_threshold_that_follows_is_where_speculating_stops_paying() -> None:
    """B65."""
    file = full_results()
    assert best_threshold(file) == 128
    file.cells["sweep/64/eagle3"] = Cell(value=column(8000.0))
    assert best_threshold(file) == 16
    del file.cells["sweep/64/eagle3"]
    assert best_threshold(file) is None


def test_a_policy_that_loses_more_than_five_percent_is_not_the_better_side() -> None:
    file = with_cell("sweep/1/threshold over chosen", pair(column(94.0), column(100.0), chosen="eagle3"))
    assert verdict(file, "the better of on and off").word == "missed"


def test_a_verdict_is_good_only_when_reached() -> None:
    reached = Verdict("bar", "got", "reached")
    assert reached.is_good
    assert not dataclasses.replace(reached, word="not resolved").is_good

"""From kernels' times to a table."""

from __future__ import annotations

import pytest

from engine.gpu_check.kernel_profile import kernel_table, missed
from tests.engine.gpu_check.results import column, full_results


def test_overlapping_kernels_keep_the_device_busy_once() -> None:
    spans = [("a", 0.0, 10.0), ("b", 5.0, 15.0), ("a", 20.0, 30.0)]
    table = kernel_table(spans, wall_us=40.0)
    assert table["busy"] == pytest.approx(25 / 30, abs=1e-4)
    assert table["launches"] == 3
    assert [(row["kernel"], row["ms"], row["calls"]) for row in table["top"]] == [("a", 0.02, 2), ("b", 0.01, 1)]


def test_nothing_on_the_device_is_no_division() -> None:
    assert kernel_table([], wall_us=5.0)["busy"] is None


def test_only_rows_that_missed_are_profiled() -> None:
    file = full_results()
    assert missed(file) == []
    file.cells["sweep/128/eagle3"].value = column(13_999.0)
    for clients in (1, 16):
        file.cells[f"floor/step/{clients}x1"].value["ms"] *= 0.5 if clients == 16 else 1.0
    assert missed(file) == [("plain", 16), ("eagle3", 128)]

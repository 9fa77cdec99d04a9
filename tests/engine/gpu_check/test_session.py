"""Cells: run once, resumed, failed, cut by the budget."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from engine.gpu_check import session as module
from engine.gpu_check.check_file import CheckFile, load
from engine.gpu_check.session import DeviceBroken, OutOfTime, Session, Skip
from engine.gpu_check.sizes import QUICK


def make(path: Path, run: str = "first", budget: float = 100.0) -> Session:
    out = path / "out.json"
    return Session("cpu", QUICK, out, load(out), run, time.monotonic() + budget)


def fails() -> Any:
    raise ValueError("no such luck")


def test_a_done_cell_is_not_run_again(tmp_path: Path) -> None:
    assert make(tmp_path).cell("a", lambda: 1) == 1
    assert make(tmp_path, "second").cell("a", lambda: 2) == 1


def test_each_cell_is_in_the_file_as_it_ends(tmp_path: Path) -> None:
    session = make(tmp_path)
    session.cell("a", lambda: {"ms": 1})
    seen: list[CheckFile] = []
    session.cell("b", lambda: seen.append(load(session.path)))
    assert (seen[0].value("a"), seen[0].running) == ({"ms": 1}, "b")
    assert load(session.path).running is None


def test_a_failed_cell_is_tried_again_by_the_next_invocation_only(tmp_path: Path) -> None:
    session = make(tmp_path)
    assert session.cell("a", fails) is None
    assert session.file.cells["a"].error == "ValueError: no such luck"
    assert session.cell("a", lambda: 1) is None
    assert make(tmp_path, "second").cell("a", lambda: 1) == 1


def test_what_was_skipped_is_looked_at_again(tmp_path: Path) -> None:
    def skip() -> Any:
        raise Skip("no tool")

    session = make(tmp_path)
    assert session.cell("a", skip) is None
    assert session.file.cells["a"].skipped == "no tool"
    assert make(tmp_path, "second").cell("a", lambda: 1) == 1


def test_no_cell_begins_that_the_budget_would_not_last_for(tmp_path: Path) -> None:
    session = make(tmp_path, budget=20.0)
    assert session.cell("short", lambda: 1, expect_s=5.0) == 1
    with pytest.raises(OutOfTime):
        session.cell("long", lambda: 1, expect_s=60.0)
    assert "long" not in load(session.path).cells


def test_a_broken_device_ends_the_process_but_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "device_is_sound", lambda device: False)
    session = make(tmp_path)
    with pytest.raises(DeviceBroken):
        session.cell("a", fails)
    assert load(session.path).cells["a"].error is not None


def test_what_is_kept_is_made_once_until_released(tmp_path: Path) -> None:
    session = make(tmp_path)
    made = iter([1, 2])
    assert [session.keep("x", lambda: next(made)) for _ in range(2)] == [1, 1]
    session.release("x")
    assert session.keep("x", lambda: next(made)) == 2


def test_a_cell_that_the_budget_ends_in_is_not_waited_for_long(tmp_path: Path) -> None:
    assert make(tmp_path, budget=1000.0).patience(300.0) == 300.0
    assert make(tmp_path, budget=100.0).patience(300.0) == pytest.approx(100.0 + module.GRACE_S, abs=5.0)
    assert make(tmp_path, budget=-1000.0).patience(300.0) == 1.0

"""The process beside: what happens to a check when it dies."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engine.gpu_check.check_file import load
from engine.gpu_check.supervisor import ExitStatus, supervise

CHILD = """
import os, sys
from pathlib import Path
from engine.gpu_check.check_file import Cell, load, save
out = Path({out!r})
file = load(out)
for name in ("a", "b", "c"):
    if name in file.cells:
        continue
    file.running = name
    save(out, file)
    if name == "b":
        {deed}
    file.cells[name] = Cell(value=1)
    file.running = None
    save(out, file)
"""


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, script: str = CHILD) -> tuple[ExitStatus, Path]:
    """Supervise a process that does ``deed`` in its second of three cells."""
    out = tmp_path / "out.json"
    (tmp_path / "child.py").write_text(textwrap.dedent(script).format(out=str(out), deed=deed))
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _: real([sys.executable, tmp_path / "child.py"]))
    return supervise([], out, 60.0), out


@pytest.mark.parametrize(
    ("deed", "how"), [("os.kill(os.getpid(), 9)", "signal SIGKILL"), ("sys.exit(70)", "exit code 70")]
)
def test_the_cell_it_died_in_is_marked_and_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, how: str
) -> None:
    status, out = run(tmp_path, monkeypatch, deed)
    file = load(out)
    assert status == ExitStatus.OK
    assert {name: cell.value for name, cell in file.cells.items()} == {"a": 1, "b": None, "c": 1}
    assert how in (file.cells["b"].error or "")
    assert file.running is None


def test_a_process_that_dies_outside_of_cells_is_not_started_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, monkeypatch, "", "import sys; sys.exit(1)")[0] == ExitStatus.MISSED


def test_the_budget_ends_it_without_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out = run(tmp_path, monkeypatch, "file.running = None; save(out, file); sys.exit(3)")
    assert status == ExitStatus.OUT_OF_TIME
    assert set(load(out).cells) == {"a"}

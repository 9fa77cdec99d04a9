"""The whole check on the CPU, small: every stage runs, a rerun runs nothing, no terminal or web library is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.gpu_check.__main__ import main, make_parser
from engine.gpu_check.check_file import load
from engine.gpu_check.stages import STAGES, chosen
from engine.gpu_check.supervisor import ExitStatus

ROOT = Path(__file__).parents[3]

IMPORT_ALL = """
import importlib, sys, pytest
sys.modules.update(dict.fromkeys(("textual", "rich", "starlette", "uvicorn", "h11", "click")))
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except pytest.skip.Exception:
        pass  # a module of tests that leaves without a GPU, at its own import's end
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.slow
def test_every_stage_runs_on_the_cpu_and_a_rerun_runs_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["-m", "engine.gpu_check", "--quick", "--device", "cpu", "--out", str(out)]
    done = python(*arguments)
    assert done.returncode in (ExitStatus.OK, ExitStatus.MISSED), done.stderr[-3000:]
    first = load(out)
    assert {name: cell.error for name, cell in first.cells.items() if cell.error is not None} == {}
    assert {name.split("/")[0] for name in first.cells} == {stage.name for stage in STAGES}
    skipped = {name.split("/")[0] for name, cell in first.cells.items() if cell.skipped is not None}
    assert skipped == {"tests", "sanitizer", "profile", "tiles"}  # what needs a GPU
    assert "bars: " in done.stdout.splitlines()[-1]

    python(*arguments)
    again = load(out)
    done_cells = {name for name, cell in first.cells.items() if cell.is_done}
    assert {name: again.cells[name] for name in done_cells} == {name: first.cells[name] for name in done_cells}
    table = python(*arguments, "--table")
    assert table.returncode == 0
    assert table.stdout.count("### ") >= 7

    python(*arguments, "--again", "floor", "--only", "floor,sweep")
    once_more = load(out)
    assert once_more.cells["floor/prefill/1"].run != first.cells["floor/prefill/1"].run
    assert once_more.cells["sweep/1/off over plain"] == first.cells["sweep/1/off over plain"]


@pytest.mark.slow
def test_a_budget_that_is_over_runs_nothing_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = python("-m", "engine.gpu_check", "--quick", "--device", "cpu", "--out", str(out), "--budget", "0")
    assert done.returncode == ExitStatus.OUT_OF_TIME
    assert "run it again with the same --out" in done.stderr


def test_neither_check_nor_tests_import_a_terminal_or_web_library() -> None:
    modules = [
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
        for folder in ("engine/gpu_check", "tests/gpu")
        for path in sorted((ROOT / folder).glob("*.py"))
        if path.stem != "conftest"
    ]
    done = python("-c", IMPORT_ALL, *modules)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_tests_need_no_pytest_plugin(tmp_path: Path) -> None:
    """Without this project's options, and with plugins off: collected, and skipped or passed."""
    from engine.gpu_check.gpu_tests import pytest_command, read_report

    _, *command = pytest_command(tmp_path / "report.xml")
    done = subprocess.run(
        [sys.executable, *command, "-k", "hello or bus or alone"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = read_report((tmp_path / "report.xml").read_text())
    assert counts["failed"] == 0
    assert counts["passed"] + counts["skipped"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "sweeep"], "there is no stage 'sweeep'; there are smoke, tests"),
        (["--device", "cpu"], "takes --quick"),
        (["--out", str(ROOT / "README.md"), "--table"], "is not the file of a check"),
    ],
)
def test_what_cannot_run_is_refused_with_what_to_do(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitStatus.USAGE
    assert words in capsys.readouterr().err


def test_stages_run_in_their_order_whatever_was_typed() -> None:
    assert [stage.name for stage in chosen("sweep, smoke")] == ["smoke", "sweep"]
    assert chosen(None) == list(STAGES)


def test_the_help_names_every_stage() -> None:
    text = make_parser().format_help()
    assert all(f"  {stage.name} " in text for stage in STAGES)

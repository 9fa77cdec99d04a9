"""The tests that need a GPU, without this project's own pytest options: their plugins may be missing there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from engine.gpu_check.session import Session, Skip

ROOT = Path(__file__).parents[2]
TESTS = "tests/gpu"
LIMIT_S = 280
"""Of one file, what it compiles included."""

FIRST = ("test_kernels", "test_attention", "test_engine")
"""In this order; the rest follows by name."""


def run(session: Session) -> None:
    """Cells ``tests/FILE``, one a file of tests."""
    for name in files() or ("pytest",):
        cell = partial(run_tests, session, name)
        session.cell(f"tests/{name}", cell, 40.0, hang_s=LIMIT_S + 20)


def files() -> list[str]:
    """The files of tests, kernels first: what rests on a broken one need not be read."""
    found = sorted(path.stem for path in (ROOT / TESTS).glob("test_*.py"))
    return [name for name in FIRST if name in found] + [name for name in found if name not in FIRST]


def run_tests(session: Session, name: str) -> dict[str, Any]:
    """Counts, the first line of every failure, and which files of tests there are: a budget may leave some of them out.

    Raises:
        Skip: the tests are not here (they are in no wheel), or there is no GPU.
    """
    if not (ROOT / TESTS).is_dir():
        raise Skip(f"there is no {TESTS} here; run it from a checkout")
    if session.device != "cuda":
        raise Skip("needs a GPU")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        done = subprocess.run(
            pytest_command(report, f"{TESTS}/{name}.py"),
            cwd=ROOT,
            env={**os.environ, **_named(session.model_file)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=session.patience(LIMIT_S) - 5,
            check=False,
        )
        print(done.stdout, file=sys.stderr, flush=True)
        if not report.exists():
            raise RuntimeError(f"pytest gave no report (exit code {done.returncode}): {done.stdout[-1500:]}")
        return {**read_report(report.read_text()), "files": files()}


def _named(model_file: str | None) -> dict[str, str]:
    """How tests/gpu is told of a model outside of the cache."""
    return {"SPECWB_MODEL_FILE": str(Path(model_file).absolute())} if model_file else {}


def pytest_command(report: Path, target: str = TESTS) -> list[str]:
    """pytest with what the tests need of this project's options, and nothing that asks for a plugin."""
    return [
        *(sys.executable, "-m", "pytest", target, "-q", "-ra", "--tb=short"),
        *("-c", "/dev/null", "--rootdir", str(ROOT), "-o", f"pythonpath={ROOT}", "--import-mode=importlib"),
        *("-p", "no:cacheprovider", f"--junitxml={report}", "--durations=8"),
    ]


def read_report(xml: str) -> dict[str, Any]:
    """What a JUnit report comes to."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures, skips = [], []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if wrong is not None:
            counts["failed"] += 1
            failures.append(f"{name}: {_first_line(wrong)}"[:400])
        elif skipped is not None:
            counts["skipped"] += 1
            skips.append(f"{name}: {skipped.get('message') or ''}"[:200])
        else:
            counts["passed"] += 1
    return {**counts, "failures": failures, "skips": skips}


def _first_line(element: ElementTree.Element) -> str:
    return ((element.get("message") or "").splitlines() or [""])[0]

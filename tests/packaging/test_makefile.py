"""What `make` does in a tree of its own: installs once, then never again until something changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout's set-up files, with nothing installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "scripts"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    return tmp_path


def make(tree: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    # PYTHON, MAKEFLAGS and the like of the make that may be running this very test must not leak in.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTHON", "PIP_ARGS"))}
    return subprocess.run(
        ["make", *args], cwd=tree, env=clean | env, capture_output=True, text=True, timeout=60, check=False
    )


def dry_run(tree: Path, *args: str, **env: str) -> str:
    done = make(tree, "-n", *args, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def installs(output: str) -> bool:
    return "scripts/install.sh" in output or re.search(r"\bpip\b", output) is not None


def pretend_installed(tree: Path) -> None:
    """Leaves what an installation leaves: a working interpreter, and the stamp that make itself would write."""
    stamp = re.search(r"touch (\S+)", dry_run(tree, "test"))
    assert stamp is not None
    (tree / ".venv/bin").mkdir(parents=True)
    (tree / ".venv/bin/python").symlink_to(sys.executable)
    (tree / stamp[1]).touch()


@pytest.mark.parametrize("target", ["test", "demo", "check-fast", "fmt"])
def test_a_fresh_stamp_means_no_pip(tree: Path, target: str) -> None:
    assert installs(dry_run(tree, target))
    pretend_installed(tree)
    assert not installs(dry_run(tree, target))


def test_touching_a_file_installs_nothing_but_changing_it_does(tree: Path) -> None:
    pretend_installed(tree)
    for name in ("pyproject.toml", "constraints.txt"):
        (tree / name).touch()
    assert not installs(dry_run(tree, "test"))
    with (tree / "constraints.txt").open("a") as file:
        file.write("# changed\n")
    assert installs(dry_run(tree, "test"))


def test_a_moved_tree_is_installed_again(tree: Path) -> None:
    pretend_installed(tree)
    assert installs(dry_run(tree.rename(tree.with_name("moved")), "test"))


def test_an_interpreter_named_by_hand_replaces_a_venv_of_another_version(tree: Path) -> None:
    pretend_installed(tree)
    assert not installs(dry_run(tree, "test", PYTHON=sys.executable))
    other = tree / "python-of-another-version"
    other.write_text("#!/bin/sh\necho '(3, 0)'\n")
    other.chmod(0o755)
    assert installs(dry_run(tree, "test", PYTHON=str(other)))


def test_all_checks_run_and_pytest_is_the_last(tree: Path) -> None:
    lines = dry_run(tree, "test", "PYTEST_ARGS=-k some_name").splitlines()
    steps = ["ruff format --check", "ruff check", "mypy", "lint-imports", "pytest"]
    places = [next(place for place, line in enumerate(lines) if step in line) for step in steps]
    assert places == sorted(places)
    assert lines[-1].endswith("-k some_name")


def test_pip_options_are_passed_through(tree: Path) -> None:
    assert "--find-links 'a b'" in dry_run(tree, "test", "PIP_ARGS=--find-links 'a b'")


def test_the_gpu_check_takes_a_python_that_is_there(tree: Path) -> None:
    assert installs(dry_run(tree, "gpu-check"))
    output = dry_run(tree, "gpu-check", "GPU_PYTHON=python3", "GPU_CHECK_ARGS=--only sweep")
    assert output.strip() == "python3 -m engine.gpu_check --only sweep"


def test_plain_make_lists_the_targets(tree: Path) -> None:
    listing = make(tree).stdout
    for target in ("demo", "test", "check-fast", "gpu-check", "fmt", "clean"):
        assert f"make {target} " in listing


def test_no_python_names_the_apt_line(tree: Path) -> None:
    done = make(tree, "test", PYTHON="python-that-is-not-there")
    assert done.returncode != 0
    assert "there is no python-that-is-not-there here" in done.stderr
    assert "apt-get install make python3-venv" in done.stderr


def test_an_old_python_is_named_with_what_is_needed(tree: Path) -> None:
    old = tree / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2"\nexit 1\n')
    old.chmod(0o755)
    done = make(tree, "test", PYTHON=str(old))
    assert done.returncode != 0
    assert "Python 3.9.2, but Python 3.11, 3.12 or 3.13 is needed" in done.stderr
    assert not (tree / ".venv").exists()


def test_a_python_without_ensurepip_names_the_apt_line(tree: Path) -> None:
    """As Debian ships python3 without python3-venv."""
    shadow = tree / "shadow"
    shadow.mkdir()
    (shadow / "ensurepip.py").write_text("raise ImportError('not packaged')\n")
    done = make(tree, "test", PYTHON=sys.executable, PYTHONPATH=str(shadow))
    assert done.returncode != 0
    assert "its venv or ensurepip module is missing" in done.stderr
    assert "apt-get install make python3-venv" in done.stderr
    assert not (tree / ".venv").exists()

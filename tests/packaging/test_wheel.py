"""The wheel that `pip install specwb` takes: what is in it, and that it runs without torch, from any folder."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGES = ("workbench", "engine", "probes", "recordings")
HEAVY = ("torch", "numpy", "textual", "engine", "starlette", "uvicorn")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env={}, capture_output=True, text=True, timeout=120, check=False)


def pip(*args: str | Path, cwd: Path) -> None:
    # --no-index: nothing here may ask a package index, whatever pip's configuration says.
    done = run(sys.executable, "-I", "-m", "pip", *args, "--no-deps", "--no-index", cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def package_files() -> set[str]:
    """Everything in the four packages that git would keep."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def closure(names: list[str]) -> set[str]:
    """Distributions that these need, themselves included, extras left out."""
    todo, found = list(names), set[str]()
    while todo:
        name = canonicalize_name(todo.pop())
        if name in found:
            continue
        found.add(name)
        wanted = map(Requirement, importlib.metadata.requires(name) or [])
        todo += [need.name for need in wanted if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--wheel-dir", target, ROOT, cwd=target)
    (built,) = target.glob("specwb-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and its hard requirements, linked from this one, and nothing else."""
    home = tmp_path_factory.mktemp("environment")
    done = run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    assert done.returncode == 0, done.stderr
    (site,) = home.glob("lib/python3.*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    lines = (line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist"))
    hard = [need.name for need in map(Requirement, lines) if need.marker is None]
    for name in closure(hard):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    pip("--python", home / "bin/python", "install", wheel, cwd=home)
    return home


def test_the_wheel_holds_the_four_packages_whole_and_nothing_else(wheel: Path) -> None:
    before = package_files()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert not [name for name in names if "tests" in name.split("/") or "conftest" in name]
    assert before - names == set()
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in names)


def test_the_default_draft_head_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    heads = {name: size for name, size in sizes.items() if name.startswith("engine/models/data/")}
    assert any(name.endswith(".safetensors") and size > 1_000_000 for name, size in heads.items()), heads
    assert any(name.endswith("/config.json") for name in heads), heads


def test_the_command_runs_without_torch_from_another_folder(environment: Path, tmp_path: Path) -> None:
    probe = "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('numpy'))"
    assert run(environment / "bin/python", "-c", probe, cwd=tmp_path).stdout.split() == ["None", "None"]
    done = run(environment / "bin/specwb", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "specwb" in done.stdout


def test_the_workbench_comes_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    done = run(environment / "bin/python", "-c", "import workbench.cli as w; print(w.__file__)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(environment)


def test_starting_the_command_imports_nothing_heavy(tmp_path: Path) -> None:
    """Here torch and textual are installed, so that an import behind a `try` would show."""
    probe = f"import sys, workbench.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"

"""The directory that decides who may steer an engine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from probes.runtime_dir import RuntimeDirError, engine_dir, runtime_dir


def test_made_private_under_the_runtime_directory(runtime: Path) -> None:
    assert runtime_dir() == runtime
    assert runtime.stat().st_mode & 0o777 == 0o700
    assert engine_dir("main") == runtime / "main"
    assert engine_dir("main").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("value", ["", "relative/dir", "/does/not/exist"])
def test_falls_back_to_the_temporary_directory(value: str, socket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    monkeypatch.setattr(tempfile, "tempdir", str(socket_dir))
    assert runtime_dir() == socket_dir / f"specwb-{os.getuid()}"
    assert runtime_dir().stat().st_mode & 0o777 == 0o700


def test_someone_elses_runtime_directory_is_not_used(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_RUNTIME_DIR as `su` and `sudo -E` leave it: it belongs to the other user."""
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(RuntimeDirError, match="belongs to user id"):
        runtime_dir()
    (Path(tempfile.gettempdir()) / "specwb-4242").rmdir()


def test_directory_open_to_others_is_refused(runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    runtime.chmod(0o750)
    with pytest.raises(RuntimeDirError, match=rf"mode 0750.*run `chmod 700 {runtime}`"):
        runtime_dir()


def test_link_and_file_are_refused(runtime: Path, socket_dir: Path) -> None:
    (socket_dir / "target").mkdir(mode=0o700)
    runtime.symlink_to(socket_dir / "target")
    with pytest.raises(RuntimeDirError, match="not a directory"):
        runtime_dir()
    runtime.unlink()
    runtime.write_text("")
    with pytest.raises(RuntimeDirError, match="not a directory"):
        runtime_dir()


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a b", "ä", "x" * 49, "a\n"])
def test_names_that_are_no_names(runtime: Path, name: str) -> None:
    with pytest.raises(RuntimeDirError, match="expected 1 to 48 letters"):
        engine_dir(name)


def test_path_too_long_for_a_socket_says_so(socket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = socket_dir / ("d" * 60)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    assert engine_dir("a").is_dir()
    with pytest.raises(RuntimeDirError, match=r"control\.sock has \d+ bytes, and a unix socket's path may have 103"):
        engine_dir("a" * 40)

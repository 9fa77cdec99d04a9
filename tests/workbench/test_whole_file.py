from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from workbench.whole_file import is_writable, write_whole


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("a longer text than the new one")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "latest.json", tmp_path / "there" / "1.json"
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As with a device: a file in its place would be there for everybody on the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"new")
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_cannot_be_written_is_said_and_leaves_the_old_text(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(folder, b"new")
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "nowhere" / "a.json", b"new")
    assert os.listdir(tmp_path) == ["a"]


def test_it_is_known_before_the_run(tmp_path: Path) -> None:
    assert is_writable(tmp_path / "a.json")
    assert is_writable(Path(os.devnull))
    assert not is_writable(tmp_path)
    assert not is_writable(tmp_path / "nowhere" / "a.json")

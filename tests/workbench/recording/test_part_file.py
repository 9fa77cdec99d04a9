"""The file while it is written, and its name at the end."""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest

from workbench.recording.part_file import PartFile, is_being_written
from workbench.recording.recording_error import RecordingError


def test_it_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    file = PartFile(tmp_path / "x.mcap")
    file.write(b"abc")
    assert (tmp_path / "x.mcap.part").read_bytes() == b"abc"  # nothing is held back
    file.publish()
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.mcap"]


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "old.mcap").write_bytes(b"old")
    with pytest.raises(RecordingError, match="never overwritten"):
        PartFile(tmp_path / "old.mcap")
    first = PartFile(tmp_path / "x.mcap")
    with pytest.raises(RecordingError, match=r"x\.mcap\.part exists"):
        PartFile(tmp_path / "x.mcap")
    (tmp_path / "x.mcap").write_bytes(b"from elsewhere")
    with pytest.raises(RecordingError, match="has appeared meanwhile"):
        first.publish()
    assert (tmp_path / "x.mcap").read_bytes() == b"from elsewhere"
    assert (tmp_path / "x.mcap.part").exists()
    first.close()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    file = PartFile(tmp_path / "x.mcap")
    monkeypatch.setattr(os, "link", refuse)
    file.publish()
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.mcap"]


def test_a_folder_that_is_not_there_or_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "no-such", tmp_path / "file"):
        with pytest.raises(RecordingError, match="cannot be written: N"):
            PartFile(folder / "x.mcap")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RecordingError, match="Permission denied"):
        PartFile(tmp_path / "x.mcap")
    tmp_path.chmod(0o700)


def test_a_full_disk_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B98."""
    disk = namedtuple("disk", "f_bavail f_frsize f_blocks")
    monkeypatch.setattr(os, "statvfs", lambda _: disk(100, 4096, 1000))
    with pytest.raises(RecordingError, match=r"is full: 0\.4 MB are free"):
        PartFile(tmp_path / "x.mcap")
    assert not list(tmp_path.iterdir())


def test_a_reader_sees_whether_the_writer_lives(tmp_path: Path) -> None:
    file = PartFile(tmp_path / "x.mcap")
    with file.part.open("rb") as reader:
        assert is_being_written(reader.fileno())
        file.close()
        assert not is_being_written(reader.fileno())


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be written: File name too long"):
        PartFile(tmp_path / ("x" * 300))


def test_a_name_that_a_dangling_link_has(tmp_path: Path) -> None:
    (tmp_path / "x.mcap").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match="never overwritten"):
        PartFile(tmp_path / "x.mcap")


def test_a_file_system_that_counts_no_blocks_is_not_taken_for_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = namedtuple("disk", "f_bavail f_frsize f_blocks")
    monkeypatch.setattr(os, "statvfs", lambda _: disk(0, 4096, 0))
    PartFile(tmp_path / "x.mcap").discard()

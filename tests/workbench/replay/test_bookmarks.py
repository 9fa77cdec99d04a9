"""Bookmarks beside a recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.replay.bookmarks import Bookmark, BookmarkError, Bookmarks, bookmarks_path


def test_they_stay_in_a_file_beside(tmp_path: Path) -> None:
    recording = tmp_path / "load.mcap"
    marks = Bookmarks(recording)
    assert marks.all == []
    marks.add(30.0, "later")
    marks.add(10.0, "sooner")
    assert json.loads((tmp_path / "load.mcap.bookmarks.json").read_text())["bookmarks"][0] == {
        "t": 10.0,
        "name": "sooner",
    }
    again = Bookmarks(recording)
    assert again.all == [Bookmark(10.0, "sooner"), Bookmark(30.0, "later")]
    again.remove("sooner")
    assert Bookmarks(recording).all == [Bookmark(30.0, "later")]
    assert not recording.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["load.mcap.bookmarks.json"]


def test_a_part_has_those_of_its_recording(tmp_path: Path) -> None:
    assert bookmarks_path(tmp_path / "load.mcap.part") == bookmarks_path(tmp_path / "load.mcap")


def test_a_name_that_is_taken_moves() -> None:
    marks = Bookmarks(None)
    marks.add(1.0, "a")
    marks.add(2.0, "a")
    assert marks.all == [Bookmark(2.0, "a")]
    assert marks.free_name() == "mark 2"
    marks.add(3.0, "mark 3")
    assert marks.free_name() == "mark 4"


@pytest.mark.parametrize("text", ["", "[]", '{"bookmarks": [{"t": "x"}]}'])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = bookmarks_path(tmp_path / "a.mcap")
    path.write_text(text)
    with pytest.raises(BookmarkError, match=r"a\.mcap\.bookmarks\.json cannot be read"):
        Bookmarks(tmp_path / "a.mcap")
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    marks = Bookmarks(folder / "a.mcap")
    folder.rmdir()
    with pytest.raises(BookmarkError, match="bookmarks are not kept"):
        marks.add(1.0, "a")
    assert marks.all == [Bookmark(1.0, "a")], "it holds until the player ends"

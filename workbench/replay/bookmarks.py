"""Bookmarks of a recording, in a file beside it: the recording itself never changes."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workbench.whole_file import write_whole


@dataclass(frozen=True, order=True)
class Bookmark:
    """A place somebody wants to find again."""

    t: float
    """Seconds since the epoch, by the recording's time."""
    name: str


class _File(msgspec.Struct):
    bookmarks: list[Bookmark]


class BookmarkError(Exception):
    """The file of bookmarks cannot be read or written; the message says which and why."""


def bookmarks_path(recording: Path) -> Path:
    """``NAME.mcap.bookmarks.json``, also of a recording that is still named ``NAME.mcap.part``."""
    return recording.with_name(recording.name.removesuffix(".part") + ".bookmarks.json")


class Bookmarks:
    """The bookmarks of one recording, oldest place first; written whenever they change."""

    def __init__(self, recording: Path | None) -> None:
        """Those kept beside the recording; None keeps them for this session only.

        Raises:
            BookmarkError: there is a file, and it is not one of bookmarks.
        """
        self._path = bookmarks_path(recording) if recording else None
        self._all: list[Bookmark] = []
        if self._path is None:
            return
        try:
            self._all = sorted(msgspec.json.decode(self._path.read_bytes(), type=_File).bookmarks)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            raise BookmarkError(f"the bookmarks in {self._path} cannot be read: {error}") from None

    @property
    def all(self) -> list[Bookmark]:
        """A list of one's own."""
        return list(self._all)

    def named(self, name: str) -> Bookmark | None:
        return next((bookmark for bookmark in self._all if bookmark.name == name), None)

    def free_name(self) -> str:
        """A name for one that is given none."""
        number = len(self._all) + 1
        while self.named(f"mark {number}"):
            number += 1
        return f"mark {number}"

    def add(self, t: float, name: str) -> Bookmark:
        """Set one; a name that is taken moves.

        Raises:
            BookmarkError: it cannot be kept; it holds until the player ends.
        """
        self._all = [bookmark for bookmark in self._all if bookmark.name != name]
        bookmark = Bookmark(t, name)
        insort(self._all, bookmark)
        self._write()
        return bookmark

    def remove(self, name: str) -> None:
        """Forget one.

        Raises:
            BookmarkError: as for ``add``.
        """
        self._all = [bookmark for bookmark in self._all if bookmark.name != name]
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            write_whole(self._path, msgspec.json.format(msgspec.json.encode(_File(self._all))) + b"\n")
        except OSError as error:
            raise BookmarkError(f"bookmarks are not kept: {self._path} cannot be written: {error.strerror}") from None

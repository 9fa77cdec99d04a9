"""The file of a recording that is being made: written through, locked while its writer lives, named when whole."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from workbench.recording.recording_error import RecordingError

NEEDED = 1 << 20
"""Bytes that must be free on the disk when a recording starts."""


def part_of(path: Path) -> Path:
    """Where a recording stands until it is finished."""
    return path.with_name(path.name + ".part")


class PartFile:
    """``PATH.part``: every write goes to the operating system at once, so a killed process loses nothing of it.

    The library's writer takes it for a stream. Not thread-safe, but for ``sync``.
    """

    def __init__(self, path: Path) -> None:
        """Create it.

        Raises:
            RecordingError: there is such a recording already, the folder cannot be written, or the disk is full.
        """
        self.path = path
        self.part = part_of(path)
        # Path.exists raises where a name is too long or its folder may not be entered; opening it says that better.
        if os.path.lexists(path):
            raise RecordingError(f"{path} exists, and a recording is never overwritten; choose another name")
        try:
            disk = os.statvfs(path.parent)
            free = disk.f_bavail * disk.f_frsize
            if free < NEEDED and disk.f_blocks:  # some file systems count nothing
                raise RecordingError(
                    f"the disk of {path.parent} is full: {free / 1e6:.1f} MB are free, and a recording needs at least "
                    f"{NEEDED / 1e6:.0f}; free some space, or record to another disk"
                )
            self._fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            raise RecordingError(
                f"{self.part} exists: a recording that is being made, or was not finished (`specwb recordings info` "
                f"says which, `repair` finishes it); choose another name"
            ) from None
        except OSError as error:
            raise RecordingError(f"{path} cannot be written: {error.strerror}") from None
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = 0

    def write(self, data: bytes) -> int:
        """All of it, or an OSError."""
        view = memoryview(data)
        while view:
            count = os.write(self._fd, view)
            self._size += count
            view = view[count:]
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is held back here."""

    def sync(self) -> None:
        """Have the disk keep it; may take seconds, from any thread."""
        os.fdatasync(self._fd)

    def cut(self, size: int) -> None:
        """Take back what was written beyond ``size``."""
        os.ftruncate(self._fd, size)
        os.lseek(self._fd, size, os.SEEK_SET)
        self._size = size

    def publish(self) -> None:
        """The file is whole: give it its name, unless somebody else has taken that.

        Raises:
            RecordingError: the name is taken; the file stays where it is.
            OSError: the disk.
        """
        self.sync()
        try:
            os.link(self.part, self.path)
        except FileExistsError:
            words = f"{self.path} has appeared meanwhile; the recording is whole, as {self.part}"
            raise RecordingError(words) from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            self.part.rename(self.path)  # a file system without links
        else:
            self.part.unlink()
        with suppress(OSError):
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def discard(self) -> None:
        """Remove it: nothing came of it."""
        self.part.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Give the descriptor and the lock back; the file stays. Harmless twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def is_being_written(fd: int) -> bool:
    """Whether the writer of an open recording still lives."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False

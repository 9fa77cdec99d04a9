"""A report that is written whole or not at all, and never in the place of something that is no file."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_writable(path: Path) -> bool:
    """Whether ``write_whole`` can be expected to work, to be asked before a long run."""
    if _is_special(path):
        return not path.is_dir() and os.access(path, os.W_OK)
    folder = Path(os.path.realpath(path)).parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the file and rename: whoever looks meanwhile sees the old text or the new one.

    A link stays a link. A device or a pipe (/dev/null, a shell's ``>(…)``) is written to: a rename would put a file in
    its place.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    if _is_special(path):
        with open(path, "wb", buffering=0) as out:
            out.write(data)
        return
    target = Path(os.path.realpath(path))
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether something other than a file of bytes is there."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False

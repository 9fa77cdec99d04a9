"""The directory where engines of this user put their sockets and discovery files.

``$XDG_RUNTIME_DIR/specwb``, else ``specwb-<uid>`` in the system's temporary directory. Whoever can write there can
steer an engine, so it must be ours and closed to everybody else.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from probes.errors import ProbeError

MAX_SOCKET_PATH = 103
"""Bytes a unix socket's path may have: 104 on the BSDs and 108 on Linux, each with the terminating zero."""

LONGEST_SOCKET_NAME = "control.sock"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")


class RuntimeDirError(ProbeError):
    """The directory for sockets and discovery files cannot be used safely."""


def runtime_dir() -> Path:
    """This user's directory, made with mode 0700 when it is not there.

    An ``XDG_RUNTIME_DIR`` that does not exist or belongs to someone else (left over from ``su`` or ``sudo -E``) is
    ignored.

    Raises:
        RuntimeDirError: it is a link or a file, belongs to someone else, or others may enter it.
    """
    path = _base()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # a file or a dangling link: the check below names it
    except OSError as error:
        raise RuntimeDirError(
            f"cannot make {path} for the engines' sockets: {error.strerror}; set XDG_RUNTIME_DIR to one of yours"
        ) from error
    return _checked(path)


def engine_dir(name: str) -> Path:
    """The directory of one engine: its sockets, its discovery file and its lock. Made when it is not there.

    Raises:
        RuntimeDirError: a name that cannot be a directory's, or a path too long for a unix socket.
    """
    check_name(name)
    path = runtime_dir() / name
    longest = os.fsencode(path / LONGEST_SOCKET_NAME)
    if len(longest) > MAX_SOCKET_PATH:
        raise RuntimeDirError(
            f"{os.fsdecode(longest)} has {len(longest)} bytes, and a unix socket's path may have {MAX_SOCKET_PATH}; "
            f"choose a shorter engine name or set XDG_RUNTIME_DIR to a shorter directory"
        )
    path.mkdir(mode=0o700, exist_ok=True)
    return _checked(path)


def check_name(name: str) -> None:
    """Refuse a name that would leave the runtime directory or hide in it.

    Raises:
        RuntimeDirError: with the rule.
    """
    if not _NAME.fullmatch(name):
        raise RuntimeDirError(
            f"engine name {name!r}: expected 1 to 48 letters, digits, '.', '_' or '-', the first a letter or a digit"
        )


def _base() -> Path:
    value = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(value):
        try:
            info = os.stat(value)
        except OSError:
            pass
        else:
            if stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid():
                return Path(value) / "specwb"
    return Path(tempfile.gettempdir()) / f"specwb-{os.getuid()}"


def _checked(path: Path) -> Path:
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise RuntimeDirError(f"{path} is not a directory; move it away, engines keep their sockets there")
    if info.st_uid != os.getuid():
        raise RuntimeDirError(
            f"{path} belongs to user id {info.st_uid}, not to you ({os.getuid()}); "
            f"set XDG_RUNTIME_DIR to a directory of yours"
        )
    if info.st_mode & 0o077:
        raise RuntimeDirError(
            f"{path} has mode {stat.S_IMODE(info.st_mode):04o}, so others could steer your engines; "
            f"expected 0700: run `chmod 700 {path}`"
        )
    return path

"""The file of a check: which machine, and what each cell came to. Written anew, whole, whenever a cell ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec


class CheckFileError(ValueError):
    """A file that cannot be gone on with; the message says what to do."""


class Cell(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that was measured or tried."""

    value: Any = None
    """JSON values only. None: it failed."""
    error: str | None = None
    skipped: str | None = None
    """Why it does not apply on this machine."""
    seconds: float = 0.0
    at: str = ""
    """UTC, when it ended."""
    run: str = ""
    """The invocation that made it."""

    @property
    def is_done(self) -> bool:
        """Nothing is to be gained by running it again. What was skipped is looked at again: a tool may be there now."""
        return self.error is None and self.skipped is None


class CheckFile(msgspec.Struct, kw_only=True):
    """All of it, as JSON."""

    format: int = 1
    machine: dict[str, str] = {}
    """card, driver, torch, triton, flashinfer, python, …: see machine.py."""
    sizes: dict[str, Any] = {}
    """What was run: see sizes.py."""
    running: str | None = None
    """The cell that runs now; still there when the process died in it."""
    cells: dict[str, Cell] = {}

    def values(self, prefix: str) -> dict[str, Any]:
        """What stands behind ``prefix/`` in the names of cells that were done -> their values."""
        return {
            name.removeprefix(f"{prefix}/"): cell.value
            for name, cell in self.cells.items()
            if name.startswith(f"{prefix}/") and cell.is_done
        }

    def value(self, name: str) -> Any:
        """A cell's value; None when it is not there or failed."""
        cell = self.cells.get(name)
        return cell.value if cell is not None and cell.is_done else None


def load(path: Path) -> CheckFile:
    """The file's content; an empty one where there is none.

    Raises:
        CheckFileError: it is something else.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return CheckFile()
    except OSError as error:
        raise CheckFileError(f"--out {path}: {error}") from error
    try:
        return msgspec.json.decode(data, type=CheckFile)
    except msgspec.DecodeError as error:
        raise CheckFileError(f"--out {path} is not the file of a check ({error}); name another one") from error


def save(path: Path, content: CheckFile) -> None:
    """Never leaves half a file behind: written beside it, then renamed."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(content)))
    os.replace(part, path)


def same_machine(content: CheckFile, machine: dict[str, str], sizes: dict[str, Any]) -> None:
    """Refuse to mix the figures of two machines, or of two sizes, in one file.

    Raises:
        CheckFileError: naming what differs.
    """
    for what, old, new in (("machine", content.machine, machine), ("sizes", content.sizes, sizes)):
        for key in sorted({*old, *new} if old else ()):
            if old.get(key) != new.get(key):
                raise CheckFileError(
                    f"the file's {what} has {key} {old.get(key)!r}, this run has {new.get(key)!r}; name another --out"
                )

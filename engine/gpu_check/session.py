"""One process of a check: its options, its file, its clock. Stages run their cells through it."""

from __future__ import annotations

import faulthandler
import gc
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch

from engine.gpu_check.check_file import Cell, CheckFile, save
from engine.gpu_check.sizes import Sizes

T = TypeVar("T")

HANG_S = 300
"""No cell takes this long; one that does is stopped, with a traceback, and costs the process."""

GRACE_S = 45
"""A cell that runs when the budget ends may take this much longer before it is stopped like one that hangs."""


class OutOfTime(Exception):
    """The budget would not last for the next cell."""


class DeviceBroken(Exception):
    """The device refuses everything after a fault: this process is of no more use."""


class Skip(Exception):
    """The cell does not apply here; the message says why."""


@dataclass
class Session:
    """What stages need of the run that they are part of."""

    device: str
    sizes: Sizes
    path: Path
    file: CheckFile
    run: str
    """Names the invocation: a cell that failed in it is not tried again before the next one."""
    deadline: float
    """``time.monotonic()`` after which no cell begins."""
    model_file: str | None = None
    prompts: str | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    """What stages leave for later ones of the same process, such as engines."""

    @property
    def torch_device(self) -> torch.device:
        return torch.device(self.device)

    def cell(self, name: str, make: Callable[[], Any], expect_s: float = 10.0, hang_s: float = HANG_S) -> Any:
        """The stored value of a cell, or that of ``make``, stored; None when it fails or is skipped.

        Raises:
            OutOfTime: less than ``expect_s`` is left. Nothing was begun.
            DeviceBroken: it failed and took the device with it.
        """
        before = self.file.cells.get(name)
        if before is not None and (before.is_done or before.run == self.run):
            return before.value
        if time.monotonic() + expect_s > self.deadline:
            raise OutOfTime(name)
        self.file.running = name
        save(self.path, self.file)
        say(f"{name} …")
        faulthandler.dump_traceback_later(self.patience(hang_s), exit=True, file=sys.__stderr__ or 2)
        began = time.perf_counter()
        cell = Cell(run=self.run)
        try:
            cell.value = make()
        except Skip as skip:
            cell.skipped = str(skip)
        except (OutOfTime, DeviceBroken, KeyboardInterrupt):
            raise
        except Exception as error:
            traceback.print_exc()
            cell.error = f"{type(error).__name__}: {error}"[:2000]
        finally:
            faulthandler.cancel_dump_traceback_later()
            cell.seconds = round(time.perf_counter() - began, 3)
            cell.at = datetime.now(UTC).isoformat(timespec="seconds")
        self.file.running = None
        self.file.cells[name] = cell
        save(self.path, self.file)
        say(f"{name}: {_shown(cell)} ({cell.seconds:.1f} s)")
        if cell.error is not None and not device_is_sound(self.device):
            raise DeviceBroken(name)
        return cell.value

    def patience(self, most: float) -> float:
        """Seconds that what begins now may take."""
        return min(most, max(1.0, self.deadline + GRACE_S - time.monotonic()))

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """What is made once a process."""
        if name not in self.kept:
            self.kept[name] = make()
        kept: T = self.kept[name]
        return kept

    def release(self, *names: str) -> None:
        """Give back what ``keep`` made, and the device memory it held."""
        for name in names:
            self.kept.pop(name, None)
        free_memory(self.device)


def free_memory(device: str) -> None:
    """Collect what nothing refers to, and hand the allocator's idle blocks back to the device."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def device_is_sound(device: str) -> bool:
    """Whether the device still takes work: after an illegal access it fails every call of the process."""
    if device != "cuda":
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def say(text: str) -> None:
    """Narration goes to stderr."""
    print(f"gpu-check: {text}", file=sys.stderr, flush=True)


def _shown(cell: Cell) -> str:
    if cell.error is not None:
        return f"FAILED: {cell.error.splitlines()[0]}"
    if cell.skipped is not None:
        return f"skipped: {cell.skipped}"
    text = str(cell.value)
    return text if len(text) <= 160 else f"{text[:157]}…"

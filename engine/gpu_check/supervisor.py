"""Runs a check in a process beside: a fault of the device, or a kernel that never ends, costs one cell."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from engine.gpu_check.check_file import Cell, load, save


class ExitStatus(IntEnum):
    """Numbers are a contract: scripts branch on them."""

    OK = 0
    """Everything ran and every bar was reached."""
    MISSED = 1
    """Everything ran, as far as it could; a bar was missed or a cell failed."""
    USAGE = 2
    OUT_OF_TIME = 3
    """Some cells are left for a run with the same ``--out``."""
    DEVICE_BROKEN = 70
    """Of the process beside: it must be replaced."""
    INTERRUPTED = 130


MOST_DEATHS = 12
"""Processes after which something is wrong with more than single cells."""


def supervise(arguments: Sequence[str], out: Path, budget: float) -> ExitStatus:
    """Run ``python -m engine.gpu_check --child … arguments`` until it ends by itself, or the budget is used up.

    A process that dies leaves the name of its cell in the file; that cell is marked as failed and a new process goes on
    behind it.
    """
    run, deadline = uuid.uuid4().hex[:8], time.monotonic() + budget
    command = [sys.executable, "-m", "engine.gpu_check", "--child", run, str(deadline), *arguments]
    for _ in range(MOST_DEATHS):
        code = _wait(subprocess.Popen(command))
        if code in (ExitStatus.OK, ExitStatus.USAGE, ExitStatus.OUT_OF_TIME, ExitStatus.INTERRUPTED):
            return ExitStatus(code)
        if not _blame(out, run, code) and code != ExitStatus.DEVICE_BROKEN:
            return ExitStatus.MISSED  # it died outside of any cell: it would again
    return ExitStatus.MISSED


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:  # the process beside got it too
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return ExitStatus.INTERRUPTED


def _blame(out: Path, run: str, code: int) -> bool:
    """Mark the cell in which a process died; False when there was none."""
    file = load(out)
    if file.running is None:
        return False
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    error = f"the process died in this cell: {how}; its last words are above in stderr"
    file.cells[file.running] = Cell(error=error, run=run)
    print(f"gpu-check: {file.running}: {error}; going on in a new process", file=sys.stderr, flush=True)
    file.running = None
    save(out, file)
    return True

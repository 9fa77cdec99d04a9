"""An exception in the screen, told on the normal screen and kept in a file."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path


def log_dir() -> Path:
    """``$XDG_CACHE_HOME/specwb``, else ``~/.cache/specwb``. A relative value is ignored, as XDG asks."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "specwb"


def write_report(error: BaseException) -> Path | None:
    """Append the traceback to the crash log; its path, or None when it cannot be written."""
    path = log_dir() / "attach-crash.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.write(time.strftime("%Y-%m-%d %H:%M:%S\n") + "".join(traceback.format_exception(error)) + "\n")
    except OSError:
        return None
    return path


def describe(error: BaseException, log: Path | None) -> str:
    """The cause first, where it happened, where the rest is."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    kept = f"; the full trace is in {log}" if log else ""
    return f"the screen ended with {type(error).__name__}: {error}{where}{kept}"

"""What a recording is called when nobody says."""

from __future__ import annotations

import os
import time
from pathlib import Path

from workbench.recording.part_file import part_of
from workbench.recording.recording_error import RecordingError


def free_path(engine: str, folder: Path, seconds: float) -> Path:
    """``NAME-20250131-140509.mcap``, or with a number behind when that is taken.

    Raises:
        RecordingError: a thousand are.
    """
    stem = f"{engine}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(seconds))}"
    for number in range(1000):
        path = folder / (f"{stem}-{number}.mcap" if number else f"{stem}.mcap")
        if not os.path.lexists(path) and not os.path.lexists(part_of(path)):
            return path
    raise RecordingError(f"{folder} has a thousand recordings of this second")

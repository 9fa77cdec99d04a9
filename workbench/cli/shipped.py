"""The recordings that come with specwb, which a command takes by their bare names."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path


def shipped_names() -> list[str]:
    """``by-hand``, ``ramp``, …"""
    return sorted(entry.name.removesuffix(".mcap") for entry in files("recordings").iterdir() if ".mcap" in entry.name)


def recording_path(word: str) -> Path:
    """The file of that name; a bare name that is none here may be a session that ships with specwb."""
    path = Path(word)
    if not os.path.exists(path) and word in shipped_names():
        return Path(str(files("recordings") / f"{word}.mcap"))
    return path

"""A command of this program as the person who reads it can type it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "specwb"


def own_command(*words: str) -> str:
    """Quoted for a shell. Where the shell would not find ``specwb``, it begins with what started this program."""
    return shlex.join([*_program(), *words])


def _program() -> list[str]:
    if shutil.which(NAME):
        return [NAME]
    started = Path(sys.argv[0])
    if started.name == NAME and os.sep in sys.argv[0]:
        return [sys.argv[0]]
    if started.parts[-2:] == ("workbench", "__main__.py"):
        return [sys.executable, "-m", "workbench"]
    return [NAME]

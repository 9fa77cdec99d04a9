"""Starts a program of the engine by its name. The workbench imports nothing of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from workbench.console import fail
from workbench.exit_codes import ExitCode

NEEDED = ("torch", "numpy", "safetensors", "tokenizers", "gguf", "jinja2", "starlette", "uvicorn")
"""What ``pip install 'specwb[engine]'`` adds."""


def missing_packages(needed: Sequence[str] = NEEDED) -> list[str]:
    """Which of them are not installed; looks for them without importing any."""
    return [name for name in needed if importlib.util.find_spec(name) is None]


def require_engine() -> None:
    """Make sure that the engine's part is installed.

    Raises:
        CommandError: names what is missing and the pip line.
    """
    missing = missing_packages()
    if missing:
        fail(
            ExitCode.MISSING_EXTRA,
            f"the engine is not installed (no {', '.join(missing)}); run: pip install 'specwb[engine]'",
        )


def run_engine_program(module: str, arguments: Sequence[str]) -> NoReturn:
    """Become ``python -m module arguments``: this process is replaced, so signals, terminal and exit code are its own.

    Raises:
        CommandError: the engine's part is not installed.
    """
    require_engine()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])

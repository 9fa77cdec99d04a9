"""The `specwb set` command that makes a knob change, to paste into a shell or a runbook. Pure."""

from __future__ import annotations

import shlex
from typing import Any


def set_command(engine: str, values: dict[str, Any], why: str = "") -> str:
    """``specwb set demo threshold=6 --why 'more room'``, quoted for a shell."""
    words = ["specwb", "set", engine, *(f"{name}={value}" for name, value in values.items())]
    return shlex.join([*words, *(["--why", why] if why else [])])

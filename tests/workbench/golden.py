"""Golden files: expected output, kept as text that a reviewer can read.

``SPECWB_UPDATE_GOLDEN=1 pytest …`` writes them anew; the diff is then the thing to review.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """Fail, with a diff, when ``text`` is not what the golden file says."""
    path = FOLDER / f"{name}.txt"
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("SPECWB_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        pytest.fail(f"there is no golden file {path.name}; SPECWB_UPDATE_GOLDEN=1 writes it", pytrace=False)
    expected = path.read_text()
    if text != expected:
        diff = difflib.unified_diff(expected.splitlines(), text.splitlines(), path.name, "now", lineterm="")
        pytest.fail("\n".join(diff), pytrace=False)

"""docs/http.md lists what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from engine.server.unimplemented import NEUTRAL

TEXT = (Path(__file__).parents[3] / "docs" / "http.md").read_text()


def test_every_refused_field_is_listed() -> None:
    """B83: the list is documented."""
    start = TEXT.index("Refused with a 400")
    listed = set(re.findall(r"`(\w+)`", TEXT[start : TEXT.index("Their neutral values")]))
    assert listed - {"n", "best_of"} == set(NEUTRAL)


def test_every_error_code_in_the_source_is_listed() -> None:
    sources = (Path(__file__).parents[3] / "engine" / "server").glob("*.py")
    codes = {code for path in sources for code in re.findall(r'code="(\w+)"', path.read_text())}
    assert codes <= set(re.findall(r"`(\w+)`", TEXT))

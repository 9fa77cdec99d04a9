"""Lengths of time on a command line."""

from __future__ import annotations

import click
import pytest

from workbench.cli.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("60", 60), ("0.5", 0.5), ("1.5s", 1.5), ("15m", 900), ("1h30m", 5400)]
)
def test_forms(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "ten", "5x", "2d", "nan", "1e3"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)

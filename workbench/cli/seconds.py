"""A time to wait, as an option's value."""

from __future__ import annotations

import math
from typing import Any

import click

LONGEST_S = 86_400


class Seconds(click.FloatRange):
    """More than nothing, at most a day: what sockets can count in milliseconds."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=LONGEST_S)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):  # which no range keeps out
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds

"""A length of time, as an option's value: ``90s``, ``15m``, ``1h30m``; a bare number is seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from probes.duration import duration_text, parse_seconds
from workbench.cli.seconds import LONGEST_S

if TYPE_CHECKING:
    FloatType = click.ParamType[float]
else:
    FloatType = click.ParamType


class Duration(FloatType):
    """More than nothing, at most a day unless said otherwise; in seconds."""

    name = "duration"

    def __init__(self, longest: float = LONGEST_S) -> None:
        self._longest = longest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            seconds = parse_seconds(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not 0 < seconds <= self._longest:
            self.fail(
                f"{text!r} is out of range: more than nothing, at most {duration_text(self._longest)}", param, ctx
            )
        return seconds

"""Numbers with commas between them, as an option's value: ``1,4,16``."""

from __future__ import annotations

from typing import Any

import click


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Positive numbers, whole or not; each once, in the order given."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float], most: float, example: str, count: int | None = None) -> None:
        """``count``: as many as there must be; any number of them, from one, without."""
        self._kind = kind
        self._most = most
        self._example = example
        self._count = count

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        kind = "whole numbers" if self._kind is int else "numbers"
        try:
            numbers = [self._kind(word) for word in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r}: expected {kind} with commas between them, as {self._example}", param, ctx)
        if not all(0 < number <= self._most for number in numbers):
            self.fail(f"{value!r}: each must be above 0 and at most {self._most:g}", param, ctx)
        if self._count is not None:
            if len(numbers) != self._count:
                self.fail(f"{value!r}: expected {self._count} {kind}, as {self._example}", param, ctx)
            return list(numbers)
        return list(dict.fromkeys(numbers))

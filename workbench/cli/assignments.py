"""``knob=value`` words of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from probes.knobs import KNOBS

KNOB_HELP = "\b\nKnobs:\n" + "\n".join(
    f"  {name:<13} {'|'.join(spec.choices) if spec.choices else f'{spec.low}..{spec.high}':<17} {spec.help}"
    for name, spec in KNOBS.items()
)
"""The knobs of this version, for the end of a help text; an engine of another one may have others."""


def split_words(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The NAME, if the first word is not an assignment, and the assignments.

    Raises:
        click.UsageError: a second word without ``=``.
    """
    name = words[0] if words and "=" not in words[0] else None
    rest = list(words[1:] if name is not None else words)
    for word in rest:
        if "=" not in word:
            raise click.UsageError(f"got {word!r}, expected knob=value (one NAME may come first)")
    return name, rest


def parse(words: Sequence[str]) -> dict[str, Any]:
    """knob -> value as written; the knob's type is the engine's business. The same knob twice is an error.

    Raises:
        click.UsageError: no ``=``, no name before it, or a knob given twice.
    """
    values: dict[str, Any] = {}
    for word in words:
        knob, separator, value = word.partition("=")
        knob = knob.strip().replace("-", "_")
        if not separator or not knob:
            raise click.UsageError(f"got {word!r}, expected knob=value, for example threshold=4")
        if knob in values:
            raise click.UsageError(f"knob {knob} is given twice: {values[knob]!r} and {value!r}")
        values[knob] = value.strip()
    return values

"""What somebody expects of a metric, as ``NAME OP NUMBER``: ``accept_length > 1.8``."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from probes.checks.metrics import METRICS, Metric, number_text
from probes.errors import ProbeError

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}

_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*([<>=!]+)\s*(\S+)\s*")


class ExpectationError(ProbeError):
    """An expectation that nobody can check; the message says what was expected instead."""


@dataclass(frozen=True)
class Expectation:
    """``metric op limit``."""

    metric: Metric
    op: str
    limit: float

    @property
    def text(self) -> str:
        return f"{self.metric.name} {self.op} {number_text(self.limit)}"

    def holds(self, value: float) -> bool:
        return OPERATORS[self.op](value, self.limit)


def parse_expectation(text: str) -> Expectation:
    """Read one expectation.

    Raises:
        ExpectationError: not of that form, or a name that is not in the table.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ExpectationError(f"{text!r} is no expectation: write NAME OP NUMBER, such as 'accept_length > 1.8'")
    name, op, number = match.groups()
    if name not in METRICS:
        close = difflib.get_close_matches(name, METRICS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ExpectationError(f"The metrics are:\n{metrics_text()}\nthere is no metric {name!r} among them{hint}")
    if op not in OPERATORS:
        hint = "; equality is ==" if op == "=" else ""
        raise ExpectationError(f"{text!r}: {op!r} is no comparison; use one of {' '.join(OPERATORS)}{hint}")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        unit = f" (in {METRICS[name].unit})" if METRICS[name].unit else ""
        raise ExpectationError(f"{text!r}: {number!r} is not a number; write it plain{unit}, such as 1.8 or 250")
    return Expectation(METRICS[name], op, limit)


def metrics_text() -> str:
    """The table of names, a line each."""
    width = max(map(len, METRICS))
    return "\n".join(
        f"  {metric.name:<{width}}  {metric.meaning}{f' [{metric.unit}]' if metric.unit else ''}"
        for metric in METRICS.values()
    )

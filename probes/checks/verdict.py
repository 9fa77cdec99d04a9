"""Whether an expectation was met. What could not be measured was not met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from probes.checks.expectation import Expectation
from probes.checks.metrics import Reading, read
from probes.checks.tally import Tally


@dataclass(frozen=True)
class Verdict:
    """An expectation beside what was measured."""

    expectation: Expectation
    reading: Reading

    @property
    def holds(self) -> bool | None:
        """None: nothing was measured that could say so."""
        return None if self.reading.value is None else self.expectation.holds(self.reading.value)

    @property
    def is_met(self) -> bool:
        return self.holds is True

    @property
    def word(self) -> str:
        """For the table."""
        return {True: "ok", False: "FALSE", None: "NOT MEASURED"}[self.holds]

    @property
    def text(self) -> str:
        """In a sentence."""
        unit = f" {self.reading.metric.unit}" if self.reading.metric.unit else ""
        found = f"{self.reading.text}{unit}" if self.reading.value is not None else f"no value: {self.reading.why}"
        return f"expected {self.expectation.text}, got {found}"


def judge(expectations: Iterable[Expectation], tally: Tally) -> list[Verdict]:
    """One verdict an expectation, in their order."""
    return [Verdict(expectation, read(expectation.metric, tally)) for expectation in expectations]

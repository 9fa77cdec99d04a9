"""Checks: metrics over a stretch of an engine's events, expectations of them, and verdicts. Also for scripts."""

from __future__ import annotations

from probes.checks.expectation import OPERATORS, Expectation, ExpectationError, metrics_text, parse_expectation
from probes.checks.junit import junit_error, junit_xml
from probes.checks.metrics import METRICS, Metric, Reading, number_text, quantile, read, read_all
from probes.checks.tally import Tally
from probes.checks.verdict import Verdict, judge
from probes.checks.watch import WentSilent, watch

__all__ = [
    "METRICS",
    "OPERATORS",
    "Expectation",
    "ExpectationError",
    "Metric",
    "Reading",
    "Tally",
    "Verdict",
    "WentSilent",
    "judge",
    "junit_error",
    "junit_xml",
    "metrics_text",
    "number_text",
    "parse_expectation",
    "quantile",
    "read",
    "read_all",
    "watch",
]

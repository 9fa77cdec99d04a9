"""Verdicts as JUnit XML, in the form that CI servers read: one test case an expectation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree

from probes.checks.verdict import Verdict

# What XML 1.0 cannot hold, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(target: str, verdicts: Sequence[Verdict], seconds: float, at: float, notes: Sequence[str] = ()) -> str:
    """The document.

    Args:
        target: the engine's name, or the recording's.
        seconds: that were watched; each case took all of them.
        at: when that began, in seconds since the epoch.
        notes: what else is to be said; goes to ``system-out``.
    """
    suite = _suite(target, len(verdicts), seconds, at)
    suite.set("failures", str(sum(not verdict.is_met for verdict in verdicts)))
    for verdict in verdicts:
        case = _case(suite, target, verdict.expectation.text, seconds)
        if not verdict.is_met:
            kind = "false" if verdict.holds is False else "not_measured"
            failure = ElementTree.SubElement(case, "failure", message=_clean(verdict.text), type=kind)
            failure.text = _clean(f"{verdict.text}\n{verdict.reading.metric.name}: {verdict.reading.metric.meaning}")
    if notes:
        ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(notes))
    return _document(suite)


def junit_error(target: str, expectations: Sequence[str], message: str, seconds: float, at: float) -> str:
    """The document of a check that could not be made: every case is an error."""
    suite = _suite(target, len(expectations), seconds, at)
    suite.set("errors", str(len(expectations)))
    for expectation in expectations:
        case = _case(suite, target, expectation, seconds)
        ElementTree.SubElement(case, "error", message=_clean(message), type="unreachable").text = _clean(message)
    return _document(suite)


def _suite(target: str, tests: int, seconds: float, at: float) -> ElementTree.Element:
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    counts = {"tests": str(tests), "failures": "0", "errors": "0", "skipped": "0"}
    name = _clean(f"specwb check {target}")
    return ElementTree.Element("testsuite", {"name": name, **counts, "time": f"{seconds:.3f}", "timestamp": stamp})


def _case(suite: ElementTree.Element, target: str, name: str, seconds: float) -> ElementTree.Element:
    attributes = {"classname": _clean(f"specwb.check.{target}"), "name": _clean(name), "time": f"{seconds:.3f}"}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _document(suite: ElementTree.Element) -> str:
    counts = {key: suite.get(key, "0") for key in ("tests", "failures", "errors", "skipped", "time")}
    root = ElementTree.Element("testsuites", {"name": "specwb check", **counts})
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)

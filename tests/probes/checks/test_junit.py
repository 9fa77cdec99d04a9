"""The report that CI servers read."""

from __future__ import annotations

from xml.etree import ElementTree

from probes.checks import Tally, judge, junit_error, junit_xml, parse_expectation
from tests.workbench import made_events as made

EXPECTED = ["steps >= 1", "accept_length > 9", "ttft_ms_p50 < 100"]


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    for key in ("tests", "failures", "errors", "skipped"):
        assert root.get(key) == suite.get(key)
    assert len(suite.findall("testcase")) == int(suite.get("tests", ""))
    assert len(suite.findall("testcase/failure")) == int(suite.get("failures", ""))
    assert len(suite.findall("testcase/error")) == int(suite.get("errors", ""))
    return suite


def test_one_case_an_expectation_with_its_failure() -> None:
    tally = Tally()
    tally.add(made.step(1))
    verdicts = judge([parse_expectation(text) for text in EXPECTED], tally)
    suite = parsed(junit_xml("made", verdicts, 10.0, made.T0, ["3 events were lost"]))
    assert (suite.get("name"), suite.get("time"), suite.get("failures")) == ("specwb check made", "10.000", "2")
    assert suite.get("timestamp") == "2023-11-14T22:13:20"
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == EXPECTED
    assert {case.get("classname") for case in cases} == {"specwb.check.made"}
    assert cases[0].find("failure") is None
    kinds = [failure.get("type") for case in cases for failure in case.findall("failure")]
    assert kinds == ["false", "not_measured"]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("message") == "expected accept_length > 9, got 2.33333 tokens"
    assert suite.findtext("system-out") == "3 events were lost"


def test_a_check_that_could_not_be_made_is_an_error_in_every_case() -> None:
    suite = parsed(junit_error("made", EXPECTED, "no answer", 5.0, made.T0))
    assert suite.get("errors") == "3"
    assert {error.get("message") for error in suite.iter("error")} == {"no answer"}


def test_control_characters_do_not_break_the_document() -> None:
    """What XML cannot hold comes from names and paths."""
    suite = parsed(junit_error("a\x1b[31m<b>&\"'\ud800", ["steps > 1"], "was \x00 here", 1.0, made.T0))
    assert "<b>&\"'" in suite.get("name", "")

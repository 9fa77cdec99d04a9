"""How the tests of tests/gpu are run, and what becomes of a report."""

from __future__ import annotations

from engine.gpu_check.gpu_tests import ROOT, TESTS, files, read_report

REPORT = """<testsuites><testsuite>
<testcase classname="tests.gpu.test_x" name="good"/>
<testcase classname="tests.gpu.test_x" name="bad"><failure message="assert 1 == 2&#10;more">…</failure></testcase>
<testcase classname="tests.gpu.test_x" name="broken"><error message="no such fixture">…</error></testcase>
<testcase classname="tests.gpu.test_x" name="left"><skipped message="no model here">…</skipped></testcase>
</testsuite></testsuites>"""


def test_a_report_is_counted_and_failures_have_their_first_line() -> None:
    found = read_report(REPORT)
    assert (found["passed"], found["failed"], found["skipped"]) == (1, 2, 1)
    assert found["failures"] == [
        "tests.gpu.test_x::bad: assert 1 == 2",
        "tests.gpu.test_x::broken: no such fixture",
    ]
    assert found["skips"] == ["tests.gpu.test_x::left: no model here"]


def test_every_file_is_run_once_kernels_first() -> None:
    found = files()
    assert sorted(found) == sorted(path.stem for path in (ROOT / TESTS).glob("test_*.py"))
    assert found[0] == "test_kernels"

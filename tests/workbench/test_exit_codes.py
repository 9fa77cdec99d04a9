"""The exit codes are a contract."""

from __future__ import annotations

from workbench.exit_codes import MEANINGS, ExitCode


def test_numbers_are_pinned() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "FALSE": 1,
        "USAGE": 2,
        "NO_ENGINE": 3,
        "REFUSED": 4,
        "UNREACHABLE": 5,
        "MISSING_EXTRA": 6,
        "INTERNAL": 70,
        "HUNG_UP": 129,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
        "TERMINATED": 143,
    }


def test_each_has_a_meaning_in_help() -> None:
    assert set(MEANINGS) == set(ExitCode)

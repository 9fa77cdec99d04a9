"""The lines that a person reads while the demo runs."""

from __future__ import annotations

import time

from tests.workbench import made_events as made
from workbench.cell_text import width_of
from workbench.demo.progress_line import HEADER, ProgressLine


def said(columns: int | None) -> str:
    lines: list[str] = []
    progress = ProgressLine(lines.append, time.monotonic(), columns)
    progress.step(made.step(1, reason="spec_off", reason_detail="switched off by hand (spec=off)"), 1000, 3, True)
    [line] = lines
    return line


def test_requests_in_flight_stand_under_their_name() -> None:
    """Not clients of the ramp: those that leave wait for an answer first, so there may be 7 where the ramp is at 4."""
    assert said(None)[: HEADER.index("in flight") + len("in flight")].endswith(" 3")
    assert "clients" not in HEADER


def test_a_line_is_cut_at_the_terminal_s_edge() -> None:
    line = said(80)
    assert width_of(line) == 80
    assert "spec_off" in line
    assert line.endswith("…")


def test_a_line_is_whole_where_there_is_room_or_no_terminal() -> None:
    assert said(200) == said(None)
    assert said(None).endswith("spec_off: switched off by hand (spec=off)")


def test_a_reason_that_goes_on_holding_is_said_once() -> None:
    """A line a second is for what changes."""
    lines: list[str] = []
    progress = ProgressLine(lines.append, time.monotonic())
    for number, requests in enumerate((3, 3, 2, 2, 8, 8), start=1):
        progress.step(made.step(number, requests), 1000, requests, True)
    reasons = [line[HEADER.index("why") :] for line in lines]
    assert reasons == [
        "threshold: 3 decode requests <= 4",
        "",
        "threshold: 2 decode requests <= 4",
        "",
        "above_threshold: 8 decode requests > threshold 4",
        "",
    ]

"""The time axis: columns, the band of modes, marks and labels."""

from __future__ import annotations

import pytest

from probes.events import StepEvent
from tests.workbench import made_events as made
from tests.workbench.tui.made_session import MadeSession
from workbench.tui.feed import Heard
from workbench.tui.history import History, Moment
from workbench.tui.plot import ASCII, BLOCKS
from workbench.tui.plot_axis import Axis, Column, make_axis, mode_band, moment_line, time_line

T = int(made.T0)


def history_of(session: MadeSession) -> History:
    history = History()
    for item in session.items:
        if isinstance(item, StepEvent):
            history.add(item)
        elif not isinstance(item, Heard) and hasattr(item, "t"):
            history.hear(item.t)
    return history


def text(words: object) -> str:
    return "".join(word for word, _ in words)  # type: ignore[attr-defined]


def band(rans: str) -> str:
    names = {"s": "spec", "p": "plain", "b": "both", "f": "prefill", "i": "idle", "?": "unknown"}
    return text(mode_band([Column(names[letter]) for letter in rans], BLOCKS))  # type: ignore[arg-type]


def test_columns_hold_ratios_of_sums() -> None:
    session = MadeSession()
    session.decode(12, 3)
    axis = make_axis(history_of(session), session.t, 60)
    assert axis.seconds == 4
    column = axis.columns[-2]
    assert column.ran == "spec"
    assert column.tok_s == pytest.approx(2.4 * 3 / 0.086, rel=0.02)
    assert column.accept == pytest.approx(2.4, rel=0.02)
    assert column.load == (3, 3)


def test_the_running_second_is_left_out_and_columns_stand_still() -> None:
    """A column's value changes only while it is the newest one, so the screen draws the rest once."""
    session = MadeSession()
    session.decode(40, 3)
    history = history_of(session)
    early, late = make_axis(history, session.t - 1, 60), make_axis(history, session.t - 0.2, 60)
    assert early.columns[:-1] == late.columns[:-1]
    assert make_axis(history, T + 8.9, 60).columns[-2:] == make_axis(history, T + 8.1, 60).columns[-2:]


def test_gaps_are_not_joined() -> None:
    """Neither a silence nor a loss is drawn as 0, or as a line across."""
    session = MadeSession()
    session.decode(10, 3)
    session.silence(20)
    session.decode(10, 3)
    axis = make_axis(history_of(session), session.t, 240)
    rans = "".join(column.ran[0] for column in axis.columns[-39:])
    assert "u" * 18 in rans
    assert all(column.tok_s is None for column in axis.columns if column.ran == "unknown")


def test_the_band_names_what_ran_without_colour() -> None:
    """B108: words and signs, no legend needed."""
    assert band("sssssssssssspppppppppppbb??iiiiiiiii") == "━━ spec ━━━━┄┄ plain ┄┄≈≈     idle  "
    assert band("ssssssss") == "━━ spec "
    assert band("sss") == "━━━"
    assert band("pppppppppp") == "┄┄ plain ┄"
    assert band("s?p") == "━ ┄"
    assert len(band("sspp??bbffiiiiiiiis")) == 19
    assert text(mode_band([Column("both"), Column("plain")], ASCII)) == "~-"


def test_marks_stand_where_they_happened_and_have_words_only_where_they_fit() -> None:
    axis = Axis([Column("idle")] * 40, 2, T)
    marks = [
        Moment(T - 79.0, "knob", "spec auto → off"),
        Moment(T - 39.0, "knob", "threshold 4 → 6"),
        Moment(T - 35.0, "gap", "3 steps lost"),
        Moment(T - 500.0, "alert", "off the chart"),
    ]
    line = text(moment_line(axis, marks))
    assert line.startswith("K spec auto → off  ")
    assert line[20:22] == "K "
    assert line[22:36] == "G 3 steps lost"
    assert len(line) == 40


def test_the_graver_mark_of_a_column_wins() -> None:
    axis = Axis([Column("idle")] * 4, 10, T)
    line = moment_line(
        axis, [Moment(T - 5, "restart", "boot x"), Moment(T - 4, "knob", "spec"), Moment(T - 1, "gap", "1")]
    )
    assert text(line) == "   R"


def test_labels_count_the_minutes() -> None:
    line = text(time_line(Axis([Column("idle")] * 60, 4, T)))
    assert line.endswith("now")
    assert line.index("-1 min") == 60 - 15 - 0 - 1
    assert line.index("-2 min") == 60 - 30 - 1
    assert len(line) == 60


@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_narrow_axes_do_not_break(width: int) -> None:
    axis = make_axis(History(), T + 0.5, width)
    assert len(text(time_line(axis))) == width
    assert len(text(mode_band(axis.columns, BLOCKS))) == width
    assert len(text(moment_line(axis, []))) == width

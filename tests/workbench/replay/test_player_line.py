"""The player's lines."""

from __future__ import annotations

import pytest

from probes.clock import FakeClock
from tests.workbench import made_events as made
from tests.workbench.replay.memory_session import MemorySession
from workbench.cell_text import width_of
from workbench.replay.player import Player
from workbench.replay.player_line import player_line, player_lines
from workbench.time_text import clock_text

T0 = made.T0


def player(missing: str = "") -> Player:
    steps = [(T0 + n, made.step(n, 3, t=T0 + n, spec=n < 30)) for n in range(61)]
    return Player(MemorySession([*steps], missing=missing), real=FakeClock())


def text(made_by: Player, width: int) -> str:
    return "".join(word for word, _ in player_line(made_by, width))


def test_where_it_stands_and_how_it_plays() -> None:
    made_by = player()
    made_by.clock.set(T0 + 12.34)
    line = text(made_by, 120)
    assert line.startswith(f" REPLAY  playing 1x  0:12.3 / 1:00.0  {clock_text(T0 + 12)}  ━━──")
    assert "[ ] switch" in line
    made_by.clock.pause()
    made_by.clock.set_speed(float("inf"))
    assert text(made_by, 120).startswith(" REPLAY  paused max  0:12.3 ")
    made_by.clock.set(T0 + 99)
    assert text(made_by, 120).startswith(" REPLAY  END max  1:00.0 / 1:00.0 ")


def test_the_bar_has_the_switches() -> None:
    made_by = player()
    made_by.clock.set(T0 + 15)
    assert "━" in text(made_by, 60)
    assert "┼" in text(made_by, 60)
    made_by.clock.set(T0 + 60)
    assert "┿" in text(made_by, 60)
    assert "─" not in text(made_by, 60)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200, 400])
def test_it_fits(width: int) -> None:
    """B114: whatever the width, and with a name of wide characters."""
    made_by = player("not finished: 日本語 " * 30)
    made_by.file_name = "日本語.mcap.part"
    for offset in (0.0, 30.0, 60.0):
        made_by.clock.set(T0 + offset)
        for line in player_lines(made_by, width):
            assert sum(width_of(word) for word, _ in line) <= width
        assert "REPLAY" in text(made_by, width) or width < 22


def test_what_is_missing_is_a_line_of_its_own() -> None:
    assert len(player_lines(player(), 80)) == 1
    (_, second) = player_lines(player("cut off: all after 14:05:00 is missing"), 80)
    assert second[0][0].strip() == "recording: cut off: all after 14:05:00 is missing"

"""The player's own lines, above everything else: that this is a recording, where it stands, and how it plays. Pure."""

from __future__ import annotations

from bisect import bisect_right

from workbench.cell_text import fit, width_of
from workbench.replay.player import SWITCHES, Player
from workbench.replay.player_clock import PlayerClock, speed_text
from workbench.time_text import clock_text, offset_text
from workbench.tui.line_panel import Line, Word, fit_items

LEAST_BAR, MOST_BAR = 8, 60
PLAYED, TO_COME, SWITCH_PLAYED, SWITCH_TO_COME = "━", "─", "┿", "┼"
KEYS: tuple[Line, ...] = (
    [("p", "strong"), (" pause", "dim")],
    [(", .", "strong"), (" step", "dim")],
    [(":", "strong"), (" go to", "dim")],
    [("?", "strong"), (" keys", "dim")],
    [("[ ]", "strong"), (" switch", "dim")],
    [("< >", "strong"), (" speed", "dim")],
)


def state_word(clock: PlayerClock) -> Word:
    """How it plays, in a word."""
    if clock.is_at_end:
        return ("END", "warn")
    return ("paused", "warn") if clock.is_paused else ("playing", "good")


def bar_words(player: Player, width: int) -> list[Word]:
    """How much has been played, with the switches between speculating and plain on it."""
    clock = player.clock
    span = clock.end - clock.start
    cell = span / width if span > 0 else 1.0
    played = min(width, int(clock.offset / cell + 1e-9)) if span > 0 else width
    switches = [place.t - clock.start for place in player.places(SWITCHES)]

    def has_switch(index: int) -> bool:
        return bisect_right(switches, (index + 1) * cell) > bisect_right(switches, index * cell)

    done = "".join(SWITCH_PLAYED if has_switch(index) else PLAYED for index in range(played))
    rest = "".join(SWITCH_TO_COME if has_switch(index) else TO_COME for index in range(played, width))
    return [(done, "good"), (rest, "dim")]


def player_line(player: Player, width: int) -> list[Word]:
    """``REPLAY  paused 2x  0:12.3 / 1:00.0  14:03:22  ━━━┿━──┼──``, and the keys that fit."""
    clock = player.clock
    state = state_word(clock)
    items: list[Line] = [
        [(" REPLAY ", "badge:warn"), (" ", "text"), state, (f" {speed_text(clock.speed)}", "text")],
        [(offset_text(clock.offset), "strong"), (f" / {offset_text(clock.end - clock.start)}", "dim")],
        [(clock_text(clock.position), "text")],
    ]
    head = fit_items(items, width)
    used = _size(head)
    keys: list[Word] = []
    if width - used - LEAST_BAR - 4 > 0:
        keys = fit_items(KEYS, max(0, min(width - used - LEAST_BAR - 4, width // 2)))
    bar = min(MOST_BAR, width - used - 2 - (_size(keys) + 2 if keys else 0))
    if bar >= LEAST_BAR:
        head += [("  ", "text"), *bar_words(player, bar)]
    if keys:
        head += [("  ", "text"), *keys]
    return head


def player_lines(player: Player, width: int) -> list[Line]:
    """The player's line, and a second one when the recording lacks something."""
    lines: list[Line] = [player_line(player, width)]
    if player.missing:
        lines.append([(fit(f" {player.file_name}: {player.missing}", width), "warn")])
    return lines


def _size(words: Line) -> int:
    return sum(width_of(text) for text, _ in words)

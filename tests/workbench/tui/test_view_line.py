"""The line that names the views."""

from __future__ import annotations

from workbench.tui.view_line import view_line


def text(width: int) -> str:
    return "".join(word for word, _ in view_line(["overview", "steps", "knobs"], 1, width))


def test_the_current_view_is_marked_without_colour() -> None:
    assert text(80) == " 1 overview [2 steps] 3 knobs "


def test_where_there_is_no_room_the_others_are_numbers() -> None:
    assert text(20) == " 1 [2 steps] 3 "

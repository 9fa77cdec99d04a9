"""What the player's keys do."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from workbench.replay.place import FORMS
from workbench.tui.dialog import Dialog

PLAYER_KEYS = """\
p      pause, play on; at the end: from the start
, .    one step back, one step forward (pauses)
< >    slower, faster: 0.1x to 64x, max
[ ]    the switch between speculating and plain before, after
{ }    the mark before, after: knob, alert, gap, restart, bookmark
:      go to a place      0      the start
b      set a bookmark     B      list the bookmarks
"""


class PlayerHelp(Dialog[bool]):
    """Returns True when the keys of the views are asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,space", "dismiss(False)", "Close"),
        Binding("question_mark,f1", "dismiss(True)", "The views' keys"),
    ]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Keys of the player (esc closes this, ? has the other keys)", markup=False)
            yield Static(PLAYER_KEYS.rstrip(), classes="dialog--text", markup=False)
            yield Static(f"Places: {FORMS}; in : also +5s and -5s.", classes="dialog--text", markup=False)
            yield Static(
                "Every panel shows what it showed then: ages, rates and LIVE are those of that moment. "
                "Nothing can be changed in a recording.",
                classes="dialog--keys",
                markup=False,
            )

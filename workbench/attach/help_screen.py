"""What the keys do and what the words on the screen mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from workbench.attach.dialog import Dialog

KEYS = """\
s          speculation: auto, on or off (asks first)
+ -        threshold up or down (asks first)
f, space   freeze the table / follow the newest step
↑ ↓ k j    select a row (freezes)      home end   first, newest
pgup pgdn  a page up or down           tab        to the detail pane
q, ctrl-q, ctrl-c   quit; the engine goes on
"""
WORDS = """\
SPEC     draft and verify        PLAIN  one token a request
PREFILL  prompt tokens           MIXED  prefill beside plain decodes
acc      accept length of the step, 1 + correct drafts / verifies: with the
         bonus token. The status line's is of the last 10 s, n/a if none.
width    tokens per decode request × requests: 16×7 1×3
slots    KV slots of the step; ! if plan, allocator and runner disagree
ms       from the start of the step before to the start of this one
lost     events that did not reach this screen   epoch  knob changes so far
LIVE steps come  IDLE no work  BUSY one stage takes long
STALE nothing heard for 3 s    GONE the engine ended
"""


class HelpScreen(Dialog[None]):
    """Closed by any of the keys one would try."""

    DEFAULT_CSS = "HelpScreen > Vertical { width: 78; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter,space", "dismiss(None)", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Keys", classes="dialog--title", markup=False)
            yield Static(KEYS.rstrip(), markup=False)
            yield Static("Words", classes="dialog--title", markup=False)
            yield Static(WORDS.rstrip(), markup=False)
            yield Static("esc: close", classes="dialog--keys", markup=False)

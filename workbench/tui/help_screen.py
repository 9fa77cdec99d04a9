"""What the keys do and what the words on the screen mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from workbench.tui.dialog import Dialog

KEYS = """\
s         speculation: auto, on or off; asks before it changes
+ -       threshold up or down; asks before it changes
f space   freeze the table, or follow the newest step again
↑ ↓ k j   select a row (freezes)    home end   oldest, newest
pgup pgdn a page up or down         tab        to the details and back
q ctrl-q ctrl-c   quit; the engine goes on
"""
WORDS = """\
SPEC     draft and verify            PLAIN  one token a request
PREFILL  prompt tokens               MIXED  prompts with plain rows
reqs     decode requests             emit   tokens they were given
prompt   prompts:tokens, as in 2:85  que    requests that wait
width    tokens per decode request × requests, as in 16×7 1×3
slots    KV slots; ! when plan, allocator and runner disagree
acc      accept length: 1 + correct drafts / verifies, bonus included;
         in the status line over the last 10 s, n/a without a verify
ms       all stages of the step      epoch  knob changes so far
lost     events that did not reach us
LIVE     steps come    IDLE  no work     BUSY   one stage takes long
STALE    nothing heard for 3 s           GONE   the engine ended
"""


class HelpScreen(Dialog[None]):
    """Closed by any of the keys one would try."""

    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 76; }
    HelpScreen .dialog--first { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter,space", "dismiss(None)", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Keys (esc closes this)", classes="dialog--first", markup=False)
            yield Static(KEYS.rstrip(), markup=False)
            yield Static("Words", classes="dialog--title", markup=False)
            yield Static(WORDS.rstrip(), markup=False)

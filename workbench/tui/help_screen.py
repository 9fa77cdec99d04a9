"""What the keys do, view by view, and what the words on the screen mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from workbench.tui.dialog import Dialog

EVERYWHERE, CHANGES, KNOBS = "Everywhere", "Before a change (any of them)", "5 knobs"
SECTIONS: tuple[tuple[str, str], ...] = (
    (
        EVERYWHERE,
        """\
1 to 5    the views         q ctrl-q ctrl-c   quit; the engine goes on
s         speculation: auto, on or off; asks before it changes
+ -       threshold up or down; asks before it changes
r         record to a file here; again: finish it   ctrl-z   suspend
↑ ↓ k j   move   pgup pgdn   a page   home end   first, last
""",
    ),
    (
        CHANGES,
        """\
y enter   do it                 n esc   leave it
t         for how long: for good, or 5 min, 15 min, 1 h and then back
w         say why; kept with the change
a         change another knob together with it (from the knobs view)
""",
    ),
    (
        "2 steps",
        """\
f space   freeze the rows, or follow the newest step again
enter     the selected step's stages large; esc back
tab       to the stages and back
/         filter: words that must all hold; esc shows all again
          mode=plain  reqs>4  reason=memory  acc<2  ms>=50  que>0
          mismatch  replanned  miss  step>=1200  acc=none  any text
          numbers: step reqs prompt slots emit acc ms que correct
          discarded lag epoch gpu idle pad, with = != < <= > >=
o O       sort by the next column; turn the order (both freeze)
#         go to a step by its number
""",
    ),
    (
        "4 decisions",
        """\
enter     the steps of the selected run
""",
    ),
    (
        KNOBS,
        """\
enter     edit the selected knob     tab   to the trail and back
u         undo: the newest change, or the trail's selected one;
          undoing the undo does it again
c         copy the change, or all knobs, as a `specwb set` command
x         drop what is held for a common change
""",
    ),
    (
        "Words",
        """\
SPEC     draft and verify            PLAIN  one token a request
PREFILL  prompt tokens               MIXED  prompts with plain rows
reqs     decode requests             emit   tokens they were given
prompt   prompts:tokens, as in 2:85  que    requests that wait
width    tokens per decode request × requests, as in 16×7 1×3
slots    KV slots; ! when plan, allocator and runner disagree
acc      accept length: 1 + correct drafts / verifies, with bonus; in
         the status line over the last 10 s, n/a without a verify
ms       all stages of the step by the CPU's clock, waiting for the
         GPU among them              epoch  knob changes so far
gpu      ms of a step's stages by CUDA events
idle     % of its time in which the GPU waited for the next step; in
         the status line over the last 10 s
miss     the step's graph was not captured: it ran eager
pad      rows of the graph's bucket beyond the batch
SIMULATED  acceptance or weights are not a real model's
lost     events that did not reach us
LIVE     steps come    IDLE  no work     BUSY   one stage takes long
STALE    nothing heard for 3 s           GONE   the engine ended
GAP      events were lost in the last 5 s
REC      recording: time, size, losses
run      steps in a row that were decided alike; prompts' own steps
         between them do not end it
""",
    ),
)


IN_A_RECORDING = {
    EVERYWHERE: """\
1 to 5    the views         q ctrl-q ctrl-c   quit
↑ ↓ k j   move   pgup pgdn   a page   home end   first, last
ctrl-z    suspend
""",
    CHANGES: "",
    KNOBS: """\
tab       to the trail and back
c         copy the trail's selected change, or all knobs as they were
          here, as a `specwb set` command
""",
}
"""Instead of the sections with keys that steer or record; empty: there is nothing to say."""


def sections(*, is_replay: bool = False) -> list[tuple[str, str]]:
    """(title, text) of what holds on a live engine's screen, or on a recording's."""
    found = [(title, IN_A_RECORDING.get(title, text) if is_replay else text) for title, text in SECTIONS]
    return [(title, text) for title, text in found if text]


class HelpScreen(Dialog[None]):
    """Closed by any of the keys one would try; scrolls where it does not fit."""

    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 78; height: 100%; max-height: 72; padding: 0 1; }
    HelpScreen VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    HelpScreen .help--title { text-style: bold; margin-top: 1; }
    HelpScreen .help--first { margin-top: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter,space", "dismiss(None)", "Close"),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(self, *, is_replay: bool = False) -> None:
        super().__init__()
        self._is_replay = is_replay

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Help: ↑ ↓ pgup pgdn scroll, esc closes", classes="help--title help--first", markup=False)
            with VerticalScroll():
                for title, text in sections(is_replay=self._is_replay):
                    yield Static(title, classes="help--title", markup=False)
                    yield Static(text.rstrip(), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

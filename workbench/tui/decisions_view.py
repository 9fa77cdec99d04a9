"""The log of decisions: what ran, from which step to which, for how long and why; newest on top."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.cell_text import fit, width_of, wrap
from workbench.time_text import age_text
from workbench.tui.decision_log import DecisionLog, LogEntry, Note, Run
from workbench.tui.line_list import LineList
from workbench.tui.line_panel import Line, LinePanel, Word, fit_items
from workbench.tui.session_state import SessionState
from workbench.tui.step_link import StepWanted
from workbench.tui.view import View

NOTE_WORDS = {"knob": "KNOB", "alert": "ALERT", "gap": "GAP", "restart": "RESTART"}
STEPS, TIME, COUNT, MODE, REQS = 17, 8, 7, 11, 7
FIXED = STEPS + TIME + COUNT + MODE + REQS + 5


def span_text(seconds: float) -> str:
    """``0.4 s``, ``12.3 s``, ``4 min``, ``3 h``: never wider than its column."""
    return f"{seconds:.1f} s" if seconds < 60 else age_text(seconds)


def requests_text(run: Run) -> str:
    """``5`` or ``5-7``; a dot for prompts alone."""
    if run.is_prompts_only:
        return "·"
    return str(run.most) if run.least == run.most else f"{run.least}-{run.most}"


def header_line(width: int) -> list[Word]:
    cells = [
        fit("steps", STEPS),
        fit("for", TIME, "right"),
        fit("count", COUNT, "right"),
        fit("decided", MODE),
        fit("reqs", REQS),
        "reason",
    ]
    return [(" ".join(cells)[:width], "dim")]


def entry_line(entry: LogEntry, width: int) -> list[Word]:
    """One entry of the log, as wide as it may be; what is cut stands below the list in full."""
    if isinstance(entry, Note):
        text = fit(f"─ {NOTE_WORDS[entry.kind]}: {entry.text}", width).rstrip()
        rule = " " + "─" * width
        return [(text, "bad" if entry.severe else "note"), (rule[: width - width_of(text)], "dim")]
    span = f"{entry.first_step}" if entry.steps == 1 else f"{entry.first_step} - {entry.last_step}"
    role = "spec" if entry.speculates else "prefill" if entry.is_prompts_only else "plain"
    detail = f": {entry.detail}" if entry.detail else ""
    return [
        (fit(span, STEPS), "text"),
        (" " + fit(span_text(entry.seconds), TIME, "right"), "text"),
        (" " + fit(f"{entry.steps:,}", COUNT, "right") + " ", "dim"),
        (fit(entry.mode_words, MODE), role),
        (" " + fit(requests_text(entry), REQS) + " ", "text"),
        (fit(f"{entry.reason}{detail}", max(0, width - FIXED)), "text"),
    ]


def counts_line(log: DecisionLog, width: int) -> list[Word]:
    """Steps by reason, the most frequent first; then how often it switched."""
    items: list[Line] = [[(f"{log.steps:,} steps", "strong")], [(f"{log.switches:,} switches", "strong")]]
    for reason, count in log.by_reason.most_common():
        items.append([(f"{reason} ", "dim"), (f"{count:,}", "text"), (f" {count / log.steps:.0%}", "dim")])
    return fit_items(items, width)


def selected_lines(entry: LogEntry | None, width: int) -> list[Line]:
    """The selected entry in words, at most two lines."""
    if entry is None:
        return [[("no decision yet", "dim")], []]
    if isinstance(entry, Note):
        text = f"{NOTE_WORDS[entry.kind]}: {entry.text}"
    else:
        modes = ", ".join(f"{count:,} {mode}" for mode, count in entry.modes.items())
        noun = "step" if sum(entry.modes.values()) == 1 else "steps"
        text = f"{entry.reason}: {entry.detail or 'no more words'} (at its first step). {modes} {noun}"
    parts = [*wrap(text, width - 1), ""][:2]
    return [[(f" {part}", "text")] for part in parts]


class DecisionsView(View):
    """Runs of equal decisions, with knob changes, alerts and losses between them."""

    title = "decisions"
    DEFAULT_CSS = """
    DecisionsView #decision-counts { background: $surface; }
    DecisionsView #decision-words { border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "steps", "Its steps", key_display="enter")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._counts = LinePanel(id="decision-counts")
        self._list: LineList[LogEntry] = LineList(
            entry_line, lambda entry: entry.number, header_line, follows_top=True, id="decision-list"
        )
        self._words = LinePanel(id="decision-words")
        self._shown: tuple[SessionState, float] | None = None

    def compose(self) -> ComposeResult:
        yield self._counts
        yield self._list
        yield self._words

    def take_focus(self) -> None:
        self.give_keys(self._list)

    def on_resize(self, event: events.Resize) -> None:
        if self._shown is not None:  # it has no size yet when it comes on show
            self.show(*self._shown)

    def show(self, state: SessionState, now: float) -> None:
        self._shown = (state, now)
        log = state.decisions
        width = max(20, self.size.width)
        self._counts.show([counts_line(log, width)])
        self._list.show(list(reversed(log.entries)), (id(log), log.version))
        self._words.show(selected_lines(self._list.selected, width))

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        self._words.show(selected_lines(self._list.selected, max(20, self.size.width)))

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        self.action_steps()

    def action_steps(self) -> None:
        """Show the selected run's first step among its neighbours."""
        entry = self._list.selected
        if entry is None:
            return
        step = entry.first_step if isinstance(entry, Run) else entry.step
        if step:
            self.post_message(StepWanted(step, entry.boot_id))

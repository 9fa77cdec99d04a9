"""Every step in a table, the selected one in full beside or below it; above: what is filtered, sorted or frozen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from probes.events import StepEvent
from workbench.tui.detail_pane import DetailPane
from workbench.tui.line_panel import Line, LinePanel, Word
from workbench.tui.plan_alerts import PlanAlerts
from workbench.tui.prompt_line import PromptLine
from workbench.tui.session_state import SessionState
from workbench.tui.step_filter import FilterError, parse_filter
from workbench.tui.step_search import find_step
from workbench.tui.step_table import StepTable
from workbench.tui.timeline import Entry, Timeline
from workbench.tui.view import View

WIDE = 150
"""From this many columns on the details stand beside the table."""
FLOOD_PAINT_S = 0.25
"""Between two paints of the table while half a page or more is new in each."""
FILTER_HINT = "mode=plain reqs>4 reason=memory acc<2 mismatch step>=1200, or words of the reason"


class StepsView(View):
    """The step table and the details of the row that is selected in it."""

    title = "steps"
    DEFAULT_CSS = """
    StepsView #steps-note { display: none; background: $surface; }
    StepsView #steps-note.-shown { display: block; }
    StepsView #steps-body { height: 1fr; }
    StepsView.-detail StepTable { height: 5; }
    StepsView.-detail DetailPane { height: 1fr; }
    StepsView.-beside #steps-body { layout: horizontal; }
    StepsView.-beside StepTable { height: 1fr; }
    StepsView.-beside DetailPane { width: 64; height: 1fr; border-top: none; border-left: solid $panel; }
    StepsView.-beside DetailPane:focus { border-left: solid $spec; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("enter", "detail", "Detail", key_display="enter"),
        Binding("number_sign", "jump", "Jump to step", show=False),
        Binding("escape", "clear", "Show all", show=False),
    ]

    def __init__(self, timeline: Timeline, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.table = StepTable(timeline, id="steps")
        self.detail = DetailPane(id="detail")
        self._note = LinePanel(id="steps-note")
        self._prompt = PromptLine(id="steps-prompt")
        self._alerts: PlanAlerts | None = None
        self._missed = ""
        self._painted = 0  # row that was next at the last paint
        self._calm_at = 0.0

    def compose(self) -> ComposeResult:
        yield self._prompt
        yield self._note
        with Container(id="steps-body"):
            yield self.table
            yield self.detail

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-beside")

    def take_focus(self) -> None:
        self.give_keys(self.table)

    def show(self, state: SessionState, now: float) -> None:
        self._alerts = state.plan_alerts
        late = self.table.is_following and self._floods(state.timeline.end, now)
        if not late and self.table.sync():
            self._show_detail(self.table.entry)
        self._show_note()

    def _floods(self, end: int, now: float) -> bool:
        """So many rows come that nobody reads them as they pass: then a paint of all of them is owed less often."""
        new = end - self._painted
        if new > self.table.page // 4 and 0 <= self._calm_at - now <= FLOOD_PAINT_S:
            return True
        if new > self.table.page // 2:
            self._calm_at = now + FLOOD_PAINT_S
        self._painted = end
        return False

    def on_step_table_selected(self, message: StepTable.Selected) -> None:
        self._missed = ""
        self._show_detail(message.entry)
        self._show_note()

    def _show_detail(self, entry: Entry | None) -> None:
        alert = self._alerts.of(entry) if self._alerts and isinstance(entry, StepEvent) else None
        self.detail.show(entry, alert)

    def go_to(self, step: int, boot_id: str = "") -> None:
        """Select a step, or the one with the nearest number that is kept, and say so."""
        found = find_step(self.table.timeline, step, boot_id)
        if found is None:
            self._missed = f"step {step} is not kept, nor any other"
            self._show_note()
            return
        number, at = found
        self.table.select_number(number)
        self.call_after_refresh(self._say_missed, step, at)

    def _say_missed(self, step: int, at: int) -> None:
        """After the table's own message about its selection."""
        entry_step = getattr(self.table.entry, "step", at)
        if at != step:
            self._missed = f"step {step} is not here; {at} is the nearest that is"
        elif entry_step != step:
            self._missed = f"step {step} does not pass the filter; {entry_step} is the nearest that does"
        self._show_note()

    def _show_note(self) -> None:
        lines = note_lines(self.table, self._missed)
        self._note.set_class(bool(lines), "-shown")
        self._note.show(lines)

    # Typing.

    def action_filter(self) -> None:
        text = self.table.filter.text + " " if self.table.filter else ""
        self._prompt.open("filter", "/", text, FILTER_HINT)

    def action_jump(self) -> None:
        self._prompt.open("jump", "step", hint="the step's number")

    def action_detail(self) -> None:
        """Give the room below to the selected step, and the keys too; or take both back."""
        self.toggle_class("-detail")
        (self.detail if self.has_class("-detail") else self.table).focus()

    def action_clear(self) -> None:
        """One thing at a time: the large detail first, then the order, then the filter."""
        if self.has_class("-detail"):
            self.action_detail()
        elif self.table.order:
            self.table.set_order(None)
        elif self.table.filter:
            self.table.set_filter(None)

    def on_prompt_line_typed(self, message: PromptLine.Typed) -> None:
        if message.purpose == "filter":
            self._take_filter(message.text)
        else:
            self._prompt.complain("" if _is_number(message.text) else "a step has a number: digits only")

    def on_prompt_line_entered(self, message: PromptLine.Entered) -> None:
        if message.purpose == "filter":
            if self._take_filter(message.text):
                self._close_prompt()
        elif message.text.strip() and _is_number(message.text):
            self._close_prompt()
            self.go_to(int(message.text))

    def on_prompt_line_left(self, message: PromptLine.Left) -> None:
        if message.purpose == "filter":
            self.table.set_filter(None)
        self._close_prompt()

    def _take_filter(self, text: str) -> bool:
        """Filter by the text; False, with the reason on the line, when it means nothing."""
        try:
            wanted = parse_filter(text)
        except FilterError as error:
            self._prompt.complain(str(error))
            return False
        self._prompt.complain("")
        if (wanted.text if wanted else "") != (self.table.filter.text if self.table.filter else ""):
            self.table.set_filter(wanted)
        return True

    def _close_prompt(self) -> None:
        self._prompt.close()
        self.table.focus()


def _is_number(text: str) -> bool:
    return text.strip().isascii() and (not text.strip() or text.strip().isdigit()) and len(text) < 16


def note_lines(table: StepTable, missed: str = "") -> list[Line]:
    """What keeps the table from showing every step as it comes; nothing when nothing does."""
    lines: list[Line] = []
    if table.filter and table.filtered:
        rows = table.filtered
        kept = len(table.timeline)
        done = "" if rows.is_complete else f" so far, {rows.share_done:.0%} looked at"
        words: list[Word] = [("FILTER", "warn"), (f"  {table.filter.text}", "strong")]
        lines.append([*words, (f"  {rows.matches:,} of {kept:,} rows{done}; / changes it, esc clears it", "dim")])
    newer = table.newer
    rows_text = f"{newer:,} newer row{'' if newer == 1 else 's'}"
    if table.order:
        order = f" by {table.order.words} (o next, O turns), {rows_text}; f follows"
        lines.append([("FROZEN, SORTED", "warn"), (order, "dim")])
    elif not table.is_following:
        lines.append([("FROZEN", "warn"), (f"  {rows_text}; f follows again", "dim")])
    if missed:
        lines.append([(missed, "warn")])
    return lines

"""Picks a new value of one knob: from its choices, or as a number within its limits."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from probes.knobs import KnobError, KnobSpec
from workbench.tui.dialog import Dialog


class KnobEditor(Dialog[str | int | None]):
    """Returns the value, or None when left as it is."""

    DEFAULT_CSS = """
    KnobEditor Input, KnobEditor Input:focus { border: none; height: 1; padding: 0; margin-top: 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave it")]

    def __init__(self, knob: KnobSpec, current: object) -> None:
        super().__init__()
        self._knob = knob
        self._current = current

    def compose(self) -> ComposeResult:
        knob = self._knob
        with Vertical():
            yield Static(f"{knob.name}, now {self._current}", classes="dialog--title", markup=False)
            yield Static(knob.help, classes="dialog--text", markup=False)
            if knob.choices:
                yield OptionList(*(Option(choice, id=choice) for choice in knob.choices), markup=False)
            else:
                yield Input(str(self._current), select_on_focus=True)
            yield Static(id="complaint", classes="dialog--text", markup=False)
            yield Static("enter: take it   esc: leave it", classes="dialog--keys", markup=False)

    def on_mount(self) -> None:
        self._say(self._knob.expected)
        if self._knob.choices:
            options = self.query_one(OptionList)
            options.highlighted = self._knob.choices.index(str(self._current)) if self._has_current else 0
            options.focus()
        else:
            self.query_one(Input).focus()

    @property
    def _has_current(self) -> bool:
        return str(self._current) in self._knob.choices

    def _say(self, text: str) -> None:
        self.query_one("#complaint", Static).update(text)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def on_input_changed(self, event: Input.Changed) -> None:
        try:
            self._knob.parse(event.value.strip())
        except KnobError as error:
            self._say(str(error) if event.value.strip() else self._knob.expected)
        else:
            self._say(self._knob.expected)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(self._knob.parse(event.value.strip()))
        except KnobError as error:
            self._say(str(error))

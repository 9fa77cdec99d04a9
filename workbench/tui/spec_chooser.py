"""Picks what speculation should do: auto, on or off."""

from __future__ import annotations

from typing import ClassVar, get_args

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from probes.knobs import SpecMode
from workbench.tui.dialog import Dialog

MEANINGS = {
    "auto": "the policy decides by load",
    "on": "every decode step speculates",
    "off": "every step is plain",
}


class SpecChooser(Dialog[str | None]):
    """Returns the chosen mode, or None when left as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,s", "dismiss(None)", "Leave it"),
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
        *(Binding(str(number), f"choose('{mode}')", show=False) for number, mode in enumerate(get_args(SpecMode), 1)),
    ]

    def __init__(self, current: str) -> None:
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        modes = get_args(SpecMode)
        with Vertical():
            yield Static("Speculation", classes="dialog--title", markup=False)
            yield OptionList(
                *(Option(self._label(number, mode), id=mode) for number, mode in enumerate(modes, 1)), markup=False
            )
            yield Static("↑ ↓ enter or 1 2 3: choose   esc: leave it", classes="dialog--keys", markup=False)

    def _label(self, number: int, mode: str) -> str:
        now = "  (now)" if mode == self._current else ""
        return f"{number}  {mode:<5} {MEANINGS[mode]}{now}"

    def on_mount(self) -> None:
        modes = get_args(SpecMode)
        # Start on the likelier wish: off when it speculates, auto when it is off.
        wish = "auto" if self._current == "off" else "off"
        options = self.query_one(OptionList)
        options.highlighted = modes.index(wish)
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_choose(self, mode: str) -> None:
        self.dismiss(mode)

    def action_cursor(self, rows: int) -> None:
        options = self.query_one(OptionList)
        (options.action_cursor_down if rows > 0 else options.action_cursor_up)()

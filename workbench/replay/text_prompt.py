"""Asks for one line of text, and says at once what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from workbench.tui.dialog import Dialog


class TextPrompt(Dialog[str | None]):
    """Returns what ``take`` made of the text, or None when left."""

    DEFAULT_CSS = """
    TextPrompt Input { margin-top: 1; border: none; height: 1; padding: 0; background: $panel; }
    TextPrompt Input:focus { border: none; }
    TextPrompt #wrong { color: $bad; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave it")]

    def __init__(self, title: str, hint: str, take: Callable[[str], str], wrong: type[Exception]) -> None:
        """``take`` uses the text and answers with words; it raises ``wrong`` when the text will not do."""
        super().__init__()
        self._title, self._hint = title, hint
        self._take, self._wrong = take, wrong

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="dialog--title", markup=False)
            yield Input(select_on_focus=False)
            yield Static("", id="wrong", markup=False)
            yield Static(self._hint, classes="dialog--keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            answer = self._take(event.value)
        except self._wrong as error:
            self.query_one("#wrong", Static).update(str(error))
        else:
            self.dismiss(answer)

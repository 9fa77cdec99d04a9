"""One line to type into, with a word before it and, while what is typed means nothing, the reason below it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static


class PromptLine(Vertical):
    """Hidden until it is opened. Its owner answers ``Typed`` by ``complain``; enter is ``Entered``, escape ``Left``."""

    DEFAULT_CSS = """
    PromptLine { height: auto; display: none; background: $surface; }
    PromptLine.-open { display: block; }
    PromptLine Horizontal { height: 1; }
    PromptLine .prompt--label { width: auto; text-style: bold; padding: 0 1; }
    PromptLine Input, PromptLine Input:focus { border: none; height: 1; padding: 0; background: $panel; width: 1fr; }
    PromptLine .prompt--complaint { display: none; height: auto; padding: 0 1; color: $plain; }
    PromptLine .prompt--complaint.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    class Typed(Message):
        """The text changed."""

        def __init__(self, purpose: str, text: str) -> None:
            super().__init__()
            self.purpose, self.text = purpose, text

    class Entered(Typed):
        """The text is as it is meant."""

    class Left(Message):
        """Closed without an answer."""

        def __init__(self, purpose: str) -> None:
            super().__init__()
            self.purpose = purpose

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._label = Static(classes="prompt--label", markup=False)
        self._input = Input(select_on_focus=False)
        self._complaint = Static(classes="prompt--complaint", markup=False)
        self.purpose = ""
        """What the text is for, in its owner's word; empty while closed."""

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._label
            yield self._input
        yield self._complaint

    def open(self, purpose: str, label: str, text: str = "", hint: str = "") -> None:
        """Show it with a text to go on from, and give it the keys."""
        self.purpose = purpose
        self._label.update(label)
        self._input.placeholder = hint
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self._input.cursor_position = len(text)
        self.complain("")
        self.add_class("-open")
        self._input.focus()

    def close(self) -> None:
        """Hide it; its owner gives the keys to another."""
        self.purpose = ""
        self.remove_class("-open")

    def complain(self, text: str) -> None:
        """What is wrong with the text, or nothing."""
        self._complaint.update(text)
        self._complaint.set_class(bool(text), "-shown")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.purpose:
            self.post_message(self.Typed(self.purpose, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.purpose:
            self.post_message(self.Entered(self.purpose, event.value))

    def action_leave(self) -> None:
        if self.purpose:
            self.post_message(self.Left(self.purpose))

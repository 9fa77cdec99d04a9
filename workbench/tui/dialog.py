"""The box in which the screen asks or explains something."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual._styles_cache import StylesCache
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.screen import ModalScreen

from probes.simulation import WORD
from workbench.tui.session_state import SessionState

Result = TypeVar("Result")


class Dialog(ModalScreen[Result], Generic[Result]):
    """A centred box over the dimmed screen; its content is one ``Vertical``."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 66; max-width: 96%; height: auto; max-height: 96%;
        border: round $spec; background: $surface; padding: 0 2; overflow-y: auto;
    }
    Dialog .dialog--title { text-style: bold; margin-top: 1; width: 1fr; }
    Dialog .dialog--text { margin-top: 1; width: 1fr; }
    Dialog .dialog--keys { margin: 1 0; color: $foreground 70%; width: 1fr; }
    Dialog OptionList { height: auto; margin-top: 1; background: $surface; }
    Dialog OptionList, Dialog OptionList:focus { border: none; padding: 0; }
    """

    _answered = False

    def on_mount(self) -> None:
        """Textual calls this one besides a dialog's own. A box may cover the status lines, and with them the word."""
        state = getattr(self.app, "state", None)
        if isinstance(state, SessionState) and state.simulation:
            self.query_one(Vertical).border_subtitle = f" {WORD} "

    def on_unmount(self) -> None:
        # Textual remembers two colours by the cache of lines they were asked for, and so keeps the lines of a thousand
        # widgets that are gone: after some dialogs that is most of what the garbage collector has to look through.
        StylesCache.get_inner_outer.cache_clear()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a result. The first counts: keys typed ahead may bring more, which would close what is below."""
        if self._answered:
            return AwaitComplete()
        self._answered = True
        return super().dismiss(result)

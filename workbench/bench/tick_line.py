"""How far a run is, on one line of a terminal that is written over again and again."""

from __future__ import annotations

from typing import TextIO

from workbench.cell_text import fit
from workbench.console import columns_of


class TickLine:
    """Nothing is written where there is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def is_seen(self) -> bool:
        return self._stream.isatty()

    def __call__(self, text: str) -> None:
        """Show the text instead of what stands there; empty text leaves an empty line."""
        columns = columns_of(self._stream)
        if columns is not None:
            self._stream.write(f"\r{fit(text, columns - 1)}\r{text and fit(text, columns - 1).rstrip()}")
            self._stream.flush()

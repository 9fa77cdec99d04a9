"""How far something is, on one line of a terminal that is written over again and again."""

from __future__ import annotations

from typing import TextIO

from workbench.cell_text import fit
from workbench.console import columns_of


class LiveLine:
    """Nothing is written where there is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def is_seen(self) -> bool:
        return self._stream.isatty()

    def show(self, text: str) -> None:
        """Show the text instead of what stands there, cut to the terminal's columns."""
        columns = columns_of(self._stream)
        if columns is not None:
            cells = fit(text, columns - 1)
            self._stream.write(f"\r{cells}\r{cells.rstrip()}")
            self._stream.flush()

    def clear(self) -> None:
        """Leave an empty line; whatever is said next begins at its left edge."""
        self.show("")

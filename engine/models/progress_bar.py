"""A progress bar of one line; where there is no terminal, a line now and then and one at the end of a stage."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

_WIDTH = 30
_LOG_EVERY_S = 5.0


class ProgressBar:
    """Shows stages of a job one after the other; leaves the cursor on a fresh line."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._live = stream.isatty()
        self._shown: tuple[str, int] | None = None  # stage and percent last drawn
        self._logged_at = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end_line()

    def show(self, stage: str, done: int, total: int) -> None:
        """Draw, if it would look different; ``done`` and ``total`` are bytes."""
        share = done / total if total else 1.0
        percent = int(share * 100)
        if self._shown == (stage, percent):
            return
        now = time.monotonic()
        if not self._live and percent < 100 and now - self._logged_at < _LOG_EVERY_S:
            return
        if self._shown is not None and self._shown[0] != stage:
            self._end_line()
        self._shown, self._logged_at = (stage, percent), now
        amount = f"{done / 1e6:5.1f} of {total / 1e6:.1f} MB"
        if self._live:
            bar = "#" * int(share * _WIDTH)
            self._stream.write(f"\r{self._name}: {stage:<12}[{bar:<{_WIDTH}}] {share:4.0%} {amount}")
        else:
            self._stream.write(f"{self._name}: {stage} {share:4.0%} {amount}\n")
        self._stream.flush()

    def _end_line(self) -> None:
        if self._live and self._shown is not None:
            self._stream.write("\n")
            self._stream.flush()
        self._shown = None

"""What goes wrong with recordings in ways that a person can act on."""

from __future__ import annotations


class RecordingError(RuntimeError):
    """A recording cannot be made or read; the message says why and what to do."""

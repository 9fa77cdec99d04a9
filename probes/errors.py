"""The base of what this package raises for people to read: a command prints any of them and exits."""

from __future__ import annotations


class ProbeError(Exception):
    """Something went wrong between an engine and those who watch it; the message says what to do."""

"""What is raised for a model or a head that cannot be used."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A model that cannot be used as it is: says what was found, what was expected, and what to do."""


class NoBuiltInDraft(CheckpointError):
    """``auto`` asks for the head that belongs to a built-in model, and this model has none."""

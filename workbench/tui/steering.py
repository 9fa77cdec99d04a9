"""How the screen changes knobs: one interface, so that a replay can say "not here" and a test can answer itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class SteeringError(Exception):
    """The change was refused or did not get through; the message is for the operator and nothing changed."""


@dataclass(frozen=True)
class Applied:
    """A change that took effect."""

    old: dict[str, Any]
    new: dict[str, Any]
    step: int
    """First step that runs with the new values."""


class Steering(Protocol):
    """Blocking calls, made from a thread of their own."""

    not_here: str
    """Why nothing can be changed here; empty where it can."""

    def set_knobs(
        self, changes: dict[str, Any], expect: dict[str, Any], why: str, *, revert_after_s: float | None = None
    ) -> Applied:
        """Change knobs if they still have the expected values; for good, or until the engine takes it back by itself.

        Raises:
            SteeringError: refused, or no answer.
        """
        ...

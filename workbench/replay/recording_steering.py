"""Steering of a replay: there is nothing to steer."""

from __future__ import annotations

from typing import Any, NoReturn

from workbench.tui.steering import SteeringError

REFUSAL = "this is a recording; nothing can be changed"


class RecordingSteering:
    """Refuses everything."""

    not_here = REFUSAL

    def set_knobs(
        self, changes: dict[str, Any], expect: dict[str, Any], why: str, *, revert_after_s: float | None = None
    ) -> NoReturn:
        """What happened has happened.

        Raises:
            SteeringError: always.
        """
        raise SteeringError(REFUSAL)

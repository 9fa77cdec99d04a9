"""Steering over the control socket of a live engine."""

from __future__ import annotations

from typing import Any

from probes.control import ControlClient, Refused
from probes.discovery import EngineRecord
from probes.errors import ProbeError
from workbench.tui.steering import Applied, SteeringError

TIMEOUT_S = 5.0


class BusSteering:
    """One request a connection: the operator's changes are seconds apart at best."""

    not_here = ""

    def __init__(self, record: EngineRecord) -> None:
        self._record = record

    def set_knobs(
        self, changes: dict[str, Any], expect: dict[str, Any], why: str, *, revert_after_s: float | None = None
    ) -> Applied:
        """Change knobs if the expected values are in force; with ``revert_after_s`` for so many seconds.

        Raises:
            SteeringError: refused, or no answer in time.
        """
        known = {knob: value for knob, value in expect.items() if value is not None}
        try:
            with ControlClient(self._record, timeout=TIMEOUT_S) as client:
                reply = client.set_knobs(changes, expect=known or None, why=why, revert_after_s=revert_after_s)
        except ProbeError as error:
            raise SteeringError(str(error)) from error
        if isinstance(reply, Refused):
            raise SteeringError(f"{reply.message} ({reply.code})")
        return Applied(reply.old, reply.new, reply.step)

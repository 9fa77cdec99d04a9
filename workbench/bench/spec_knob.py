"""The knob ``spec`` of a benchmarked engine: set for each run, and as it was before whatever happens."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from probes.control import Applied, ControlClient
from probes.errors import ProbeError
from workbench.console import fail, say
from workbench.exit_codes import ExitCode


class SpecKnob:
    """Compare-and-set all the way: a change that somebody else made meanwhile is found, and left as it is."""

    def __init__(self, control: ControlClient, knobs: dict[str, Any], why: str) -> None:
        """``knobs``: those in force now."""
        self._control = control
        self._before = str(knobs["spec"])
        self._now = self._before
        self._why = why

    def set(self, value: str) -> None:
        """Set it, from the next step on.

        Raises:
            CommandError: the engine refused, or somebody else has changed it.
            ControlTimeout: no answer.
        """
        if value == self._now:
            return
        reply = self._control.set_knobs({"spec": value}, expect={"spec": self._now}, why=self._why)
        if isinstance(reply, Applied):
            self._now = value
        elif reply.code == "conflict":
            self._now = self._before = str(reply.found.get("spec"))  # theirs now: nothing to restore
            fail(
                ExitCode.REFUSED,
                f"spec is {self._now} now: somebody else has set it meanwhile, or the engine was restarted; what "
                f"follows would compare nothing",
            )
        else:
            fail(ExitCode.REFUSED, f"the engine refused spec={value} ({reply.code}): {reply.message}")

    def restore(self) -> None:
        """Back to what it was; says so when that is not possible. Never raises."""
        if self._now == self._before:
            return
        try:
            reply = self._control.set_knobs(
                {"spec": self._before}, expect={"spec": self._now}, why=f"{self._why}: done"
            )
        except ProbeError as error:
            say(f"spec could not be set back to {self._before}, it may still be {self._now}: {error}")
            return
        if isinstance(reply, Applied):
            self._now = self._before
        elif reply.code == "conflict":
            found = reply.found.get("spec")
            say(f"spec is {found} now, by another hand than ours, and stays so (it was {self._before} at the start)")
        else:
            say(f"spec stays {self._now}, the engine refused {self._before} ({reply.code}): {reply.message}")

    def __enter__(self) -> SpecKnob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

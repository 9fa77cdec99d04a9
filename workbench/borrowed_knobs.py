"""Knobs of a running engine that a command turns for a while: as they were before, whatever happens."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from probes.control import Applied, ControlClient
from probes.errors import ProbeError
from workbench.console import fail, say
from workbench.exit_codes import ExitCode
from workbench.step_words import changes_text

RESTORE_S = 10.0
"""Longest wait for the engine when the knobs are given back; an engine that is gone is not waited for any longer."""


class BorrowedKnobs:
    """Compare-and-set all the way: a change that somebody else made meanwhile is found, and left as it is."""

    def __init__(self, control: ControlClient, knobs: dict[str, Any], why: str) -> None:
        """``knobs``: those in force now. ``why``: kept with every change on the bus."""
        self._control = control
        self._knobs = dict(knobs)
        self._why = why
        self._before: dict[str, Any] = {}  # knobs that were turned -> value at the start
        self._now: dict[str, Any] = {}

    def set(self, **changes: Any) -> Applied | None:
        """Turn knobs, from the next step on; None when they have these values already.

        Raises:
            CommandError: the engine refused, or somebody else has turned them.
            ControlTimeout: no answer.
        """
        for name in changes:
            self._before.setdefault(name, self._knobs[name])
            self._now.setdefault(name, self._knobs[name])
        if all(self._now[name] == value for name, value in changes.items()):
            return None
        expect = {name: self._now[name] for name in changes}
        reply = self._control.set_knobs(changes, expect=expect, why=self._why)
        if isinstance(reply, Applied):
            self._now |= changes
            return reply
        if reply.code == "conflict":
            for name in reply.found:  # theirs now: nothing to give back
                self._before.pop(name, None)
            fail(
                ExitCode.REFUSED,
                f"{changes_text(expect, reply.found)}: somebody else has changed it meanwhile, or the engine was "
                f"restarted; nothing that follows could be compared with what was",
            )
        fail(ExitCode.REFUSED, f"the engine refused {_text(changes)} ({reply.code}): {reply.message}")

    def restore(self) -> None:
        """Back to what they were; says so when that is not possible. Never raises."""
        back = {name: value for name, value in self._before.items() if self._now[name] != value}
        if not back:
            return
        expect = {name: self._now[name] for name in back}
        try:
            reply = self._control.set_knobs(back, expect=expect, why=f"{self._why}: done", timeout=RESTORE_S)
        except ProbeError as error:
            say(f"{_text(back)} could not be set back, it may still be {_text(expect)}: {error}")
            return
        if isinstance(reply, Applied):
            self._now |= back
        elif reply.code == "conflict":
            say(f"{_text(reply.found)} was set by another hand and stays so (at the start it was {_text(back)})")
        else:
            say(f"{_text(expect)} stays, the engine refused {_text(back)} ({reply.code}): {reply.message}")

    def __enter__(self) -> BorrowedKnobs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()


def _text(knobs: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in knobs.items())

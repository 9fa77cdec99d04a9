"""The engine that a scripted probe has for itself: its bus, its knobs, its HTTP, and its state at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from probes.checks import Tally
from probes.ci.findings import Findings, Unsuited
from probes.ci.openai_client import OpenAiClient
from probes.control import Applied, ControlClient
from probes.discovery import find_record
from probes.errors import ProbeError
from probes.events import HelloEvent
from probes.knobs import Knobs, apply_changes
from probes.subscriber import Received, Subscriber

TOPICS = ("step", "request", "knob", "alert", "drop")
CONTROL_S = 30.0
"""Longest wait for an answer: a knob change is answered between two steps."""
SETTLE_S = 60.0
"""Longest wait for the engine to become idle."""
POLL_S = 0.1
IDLE_S = 10.0
"""Longest wait, at the start, for what others have asked for."""


class NotReached(ProbeError):
    """Something that had to come never came."""


class EngineUnderProbe:
    """Entered, it watches the engine from now on; left, it puts the knobs back."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._stack = ExitStack()
        self._changed: dict[str, Any] = {}  # knob -> value before the first change
        self.tally = Tally()
        """Of everything since the last ``forget``."""

    hello: HelloEvent
    client: OpenAiClient

    def __enter__(self) -> EngineUnderProbe:
        """Connect.

        Raises:
            DiscoveryError: no such engine.
            ControlTimeout: it does not answer.
            Unsuited: it serves no HTTP, cannot speculate, or is at work for somebody else.
        """
        record = find_record(self._name)
        self.name = record.name
        with ExitStack() as stack:
            self._control = stack.enter_context(ControlClient(record, timeout=CONTROL_S, who="probe"))
            self._subscriber = stack.enter_context(Subscriber(record, TOPICS, who="probe", timeout=CONTROL_S))
            self.hello = self._subscriber.hello
            if record.http_url is None or record.state != "ready":
                raise Unsuited(f"{record.name} does not serve HTTP yet (state {record.state}); wait until it is ready")
            if self.hello.draft is None:
                raise Unsuited(f"{record.name} has no draft model, so nothing can speculate; start it with one")
            if not self._is_idle(IDLE_S):
                raise Unsuited(f"{record.name} is at work for somebody else; a probe needs it for itself")
            self.client = OpenAiClient(record.http_url)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if self._changed:
                try:
                    self._control.set_knobs(self._changed, why="the probe is over")
                except ProbeError:
                    if error is None:
                        raise

    @property
    def knobs(self) -> Knobs:
        """As they were when the probe came."""
        return apply_changes(Knobs(), self.hello.knobs)

    def set_knobs(self, why: str, **changes: Any) -> Applied:
        """Turn knobs; they go back at the end.

        Raises:
            Unsuited: the engine refuses.
            ControlTimeout: no answer.
        """
        reply = self._control.set_knobs(changes, why=why)
        if not isinstance(reply, Applied):
            raise Unsuited(f"the engine refused {changes} ({reply.code}): {reply.message}")
        for knob, value in reply.old.items():
            self._changed.setdefault(knob, value)
        return reply

    def take(self, timeout: float = POLL_S) -> list[Received]:
        """What came on the bus, counted."""
        items = self._subscriber.poll(timeout)
        self.tally.add_all(items)
        return items

    def forget(self) -> None:
        """Count anew from here on."""
        self.tally = Tally()

    def settle(self, take: Callable[[], object]) -> None:
        """Until the engine is idle and its last step has been seen, ``take`` being called for what comes.

        Raises:
            NotReached: it goes on working.
        """
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            state = self._control.state()
            take()
            if state.stage == "idle":
                self.tally.settle(state.stage, state.step)
                tally = self.tally
                # The event of a last step that is lost for good, or was followed by an abort, would come never.
                if not isinstance(tally.slots_leaked, str) or tally.lost or tally.restarts or tally.phases["aborted"]:
                    return
        raise NotReached(f"{self.name} was not idle within {SETTLE_S:g} s after the last answer")

    def _is_idle(self, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while self._control.state().stage != "idle":
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def claim_accounting(self, findings: Findings) -> None:
        """Slots, losses, alerts and pools of what was counted since the last ``forget``."""
        tally = self.tally
        findings.claim(
            "slots expected = reserved = written",
            tally.steps > 0 and not tally.slot_mismatches,
            f"{tally.steps} steps, {tally.slot_mismatches} in which they differ",
        )
        losses = {
            "events lost": tally.lost,
            "dropped": tally.dropped,
            "unreadable": tally.malformed,
            "restarts": tally.restarts,
        }
        findings.claim(
            "nothing was lost on the bus",
            not any(losses.values()),
            ", ".join(f"{count} {what}" for what, count in losses.items()),
        )
        alerts = ", ".join(f"{code} ×{count}" for code, count in sorted(tally.alerts.items())) or "none"
        findings.claim("the engine raised no alert of level error", not tally.errors, f"alerts: {alerts}")
        leaked = tally.slots_leaked
        findings.claim("the KV pools are empty at the end", leaked == 0, f"slots in use: {leaked}")

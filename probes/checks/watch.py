"""Watches a running engine for a while and adds up what it says, from now on."""

from __future__ import annotations

import time
from collections.abc import Callable

from probes.checks.tally import Tally
from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.errors import ProbeError
from probes.subscriber import Subscriber

TOPICS = ("step", "request", "knob", "alert", "drop", "heartbeat")
POLL_S = 0.2

Progress = Callable[[float, Tally], None]
"""(seconds watched so far, what they added up to)"""


class WentSilent(ProbeError):
    """The engine stopped talking while it was watched: what was seen until then says nothing about it."""


def watch(record: EngineRecord, seconds: float, *, who: str = "check", progress: Progress | None = None) -> Tally:
    """Everything that the engine publishes within so many seconds.

    Raises:
        ControlTimeout: it does not answer.
        WentSilent: it ended, or is silent at the end.
    """
    tally = Tally()
    with Subscriber(record, TOPICS, who=who) as subscriber, ControlClient(record, who=who) as control:
        tally.meet(subscriber.hello)
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            tally.add_all(subscriber.poll(min(POLL_S, seconds - elapsed)))
            if subscriber.is_stale and not record.is_live:
                raise WentSilent(f"{record.name} is gone: process {record.pid} has ended")
            if progress is not None:
                progress(time.monotonic() - began, tally)
        if subscriber.is_stale:
            raise WentSilent(
                f"{record.name} has been silent for {subscriber.age:.1f} s; see `specwb ls` for the stage it is in"
            )
        state = control.state()
        tally.seconds = time.monotonic() - began
        tally.add_all(subscriber.poll(0))
        if state.boot_id == subscriber.boot_id:
            tally.settle(state.stage, state.step)  # heartbeats say it too, but up to a second late
    return tally

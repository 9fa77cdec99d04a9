"""What a screen that opens late is told first: what happened before it, in the order in which it happened.

The engine keeps some thousands of events a topic. With its first hello, every knob change and the newest steps in front
of the hello of now, a screen's state is built as if it had been there, and no panel has to know the difference.
"""

from __future__ import annotations

from operator import attrgetter

from probes.events import Event
from probes.subscriber import Subscriber

STEPS = 2_000
ALL = 1_000_000
"""More than any engine keeps of a topic."""
RECALLED = {"hello": ALL, "knob": ALL, "alert": ALL, "drop": ALL, "step": STEPS, "heartbeat": 1}
"""Topic -> newest events asked for. The heartbeat says whether the engine idles, before the next one comes."""


def opening(subscriber: Subscriber) -> list[Event]:
    """What was before, oldest first, and the engine as it is now. What follows comes from the subscriber."""
    past = [event for topic, count in RECALLED.items() for event in subscriber.recall(topic, count)]
    return [*sorted(past, key=attrgetter("t")), subscriber.hello]

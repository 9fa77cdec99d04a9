"""A bus with as much of an engine behind it as these tests need: knobs, a hello, and steps on demand.

Run as a program (``python -m tests.probes.fake_engine DIR BOOT_ID``) it publishes steps until it is killed.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probes.bus import Bus
from probes.endpoints import Endpoints
from probes.events import HelloEvent, StepEvent
from probes.knob_board import KnobBoard
from probes.knobs import Knobs
from probes.subscriber import Received, Subscriber

DEADLINE_S = 30.0


class FakeEngine:
    """Owns a bus and a knob board; ``serve_control`` is its loop."""

    def __init__(self, endpoints: Endpoints, boot_id: str = "boot-1", **options: Any) -> None:
        self.boot_id = boot_id
        self.step = 0
        self.board = KnobBoard(Knobs(), boot_id=boot_id)
        self.bus = Bus(endpoints, boot_id=boot_id, name="fake", hello=self.hello, **options)

    def hello(self) -> HelloEvent:
        return HelloEvent(
            boot_id=self.boot_id,
            t=self.bus.t(),
            name="fake",
            engine_version="0",
            pid=os.getpid(),
            model={"name": "none"},
            draft=None,
            config={},
            knobs=self.board.as_dict(),
            knob_epoch=self.board.knob_epoch,
            step=self.step,
            which={},
            reverts=self.board.reverts,
        )

    def make_step(self, **fields: Any) -> StepEvent:
        self.step += 1
        given = {"scheduler": "sync", "mode": "plain", "reason": "above_threshold", **fields}
        return StepEvent(boot_id=self.boot_id, step=self.step, t=self.bus.t(), **given)

    def publish_steps(self, count: int, **fields: Any) -> None:
        for _ in range(count):
            self.bus.publish(self.make_step(**fields))

    def serve_control(self, count: int) -> None:
        """Answer ``count`` changes, waiting for each on the bus's descriptor as an idle loop does."""
        while count:
            if not select.select([self.bus.control_fd], [], [], DEADLINE_S)[0]:
                raise AssertionError("no control request came")
            for pending in self.bus.take_control():
                pending.reply(self.board.apply(pending.request, self.step + 1))
                count -= 1


@contextmanager
def running(endpoints: Endpoints, boot_id: str = "boot-1", **options: Any) -> Iterator[FakeEngine]:
    engine = FakeEngine(endpoints, boot_id, **options)
    engine.bus.start()
    try:
        yield engine
    finally:
        engine.bus.close()


def poll_until(subscriber: Subscriber, done: Callable[[list[Received]], bool]) -> list[Received]:
    """Everything received until ``done`` says so."""
    items: list[Received] = []
    deadline = time.monotonic() + DEADLINE_S
    while not done(items):
        assert time.monotonic() < deadline, f"not there in time; received {len(items)}, the last {items[-5:]}"
        items += subscriber.poll(0.2)
    return items


def steps_in(items: list[Received]) -> list[int]:
    """Sequence numbers of the step events."""
    return [item.seq for item in items if isinstance(item, StepEvent)]


def main() -> None:
    engine = FakeEngine(Endpoints.in_dir(Path(sys.argv[1])), sys.argv[2])
    engine.bus.start()
    print("ready", flush=True)
    while True:
        engine.publish_steps(1)
        engine.bus.stage("run", engine.step)
        time.sleep(0.002)


if __name__ == "__main__":
    main()

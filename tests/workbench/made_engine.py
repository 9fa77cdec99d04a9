"""An engine that only talks: a real bus, real control and discovery, made steps. Runs in a test or as a program.

As a program: ``python -m tests.workbench.made_engine NAME [RATE]`` publishes RATE steps a second (0: only heartbeats)
until SIGTERM.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import msgspec

from probes.bus import Bus, Endpoints
from probes.discovery import EngineRecord, claim_name, new_record, write_record
from probes.events import Event, HelloEvent
from probes.knob_board import KnobBoard
from probes.knobs import Knobs
from tests.workbench import made_events


class MadeEngine:
    """Claims its name, binds its bus, answers control requests; steps are published by hand or at a rate."""

    def __init__(self, name: str = "made", boot_id: str = made_events.BOOT, **hello: Any) -> None:
        self.name = name
        self.boot_id = boot_id
        self.next_step = 1
        self._hello = hello
        self._claim = claim_name(name)
        endpoints = Endpoints.in_dir(self._claim.directory)
        self.bus = Bus(endpoints, boot_id=boot_id, name=name, hello=self.hello, heartbeat_s=0.2, on_control=None)
        self.board = KnobBoard(Knobs(), boot_id=boot_id, publish=self.bus.publish, t=self.bus.t)
        self.bus.start()
        self.bus.stage("idle", 0)
        self.record: EngineRecord = msgspec.structs.replace(
            new_record(name, boot_id=boot_id, endpoints=endpoints, model="smollm2-135m"),
            http_url="http://127.0.0.1:8000",
            state="ready",
        )
        write_record(self.record)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._control = threading.Thread(target=self._answer, daemon=True)
        self._control.start()

    def hello(self) -> HelloEvent:
        board = getattr(self, "board", None)
        knobs = board.as_dict() if board else made_events.knobs()
        epoch = board.knob_epoch if board else 0
        given = {"boot_id": self.boot_id, "name": self.name, "knobs": knobs, "knob_epoch": epoch, "t": self.bus.t()}
        given["reverts"] = board.reverts if board else []
        return made_events.hello(**(given | self._hello))

    def publish(self, event: Event) -> None:
        self.bus.publish(event)

    def step(self, requests: int = 3, **changes: Any) -> int:
        """Publish the next step; its number."""
        with self._lock:
            number, self.next_step = self.next_step, self.next_step + 1
            board = self.board
            given: dict[str, Any] = {"boot_id": self.boot_id, "t": self.bus.t(), "knob_epoch": board.knob_epoch}
            plain = board.knobs.spec == "off" or requests > board.knobs.threshold
            if plain:
                given |= {"spec": False}
                if board.knobs.spec == "off":
                    given |= {"reason": "spec_off", "reason_detail": "switched off by hand (spec=off)"}
            self.bus.stage("run", number)
            self.bus.publish(made_events.step(number, requests, **(given | changes)))
        return number

    def idle(self) -> None:
        self.bus.stage("idle", self.next_step - 1)

    def _answer(self) -> None:
        while not self._stop.wait(0.01):
            self.board.take_back_due(self.next_step)
            for pending in self.bus.take_control():
                pending.reply(self.board.apply(pending.request, self.next_step))

    def close(self) -> None:
        self._stop.set()
        self._control.join()
        self.bus.close()
        self._claim.release()

    def __enter__(self) -> MadeEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def stepping(engine: MadeEngine) -> Iterator[None]:
    """The engine steps until the block ends."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.005):
            engine.step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def main() -> None:
    name, rate = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    with MadeEngine(name) as engine:
        print("ready", flush=True)
        load = itertools.cycle([*range(1, 9), *range(8, 0, -1)])
        while True:
            if rate:
                for _ in range(max(1, int(rate / 100))):
                    engine.step(next(load))
                time.sleep(max(0.0, 1 / rate if rate < 100 else 0.01))
            else:
                engine.idle()
                time.sleep(0.1)


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main()

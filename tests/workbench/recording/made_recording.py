"""Recordings as a recorder would make them, of made events, on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from probes.clock import FakeClock
from probes.events import TOPICS, DropEvent, HelloEvent, RequestEvent, RequestRow, RowsEvent
from probes.subscriber import Gap, Malformed, Received, Restart
from tests.workbench import made_events as made
from workbench.recording.writer import RecordingWriter

BOOTS = ("b7f3a9c2", "c0ffee01")


def session() -> list[Received]:
    """Two boots of an engine with everything that can happen: 60 steps, switches, changes, losses, a restart."""
    rows = [RequestRow(request_id="r1", width=16, committed=40, emitted=3, correct=2, draft_lag=0)]
    rows += [RequestRow(request_id="r2", width=1, committed=41, emitted=1, correct=None, draft_lag=2)]
    first: list[Received] = [made.hello(t=made.T0, seq=0)]
    first += [made.step(number, 3) for number in range(1, 11)]
    first += [made.heartbeat(1), RowsEvent(boot_id=BOOTS[0], seq=1, step=10, t=made.T0 + 1, rows=rows)]
    first += [made.step(number, 8) for number in range(11, 21)]
    first += [made.knob_change(21, {"threshold": 4}, {"threshold": 8}, why="load test")]
    first += [made.step(number, 8, knob_epoch=1, spec=True) for number in range(21, 26)]
    first += [Gap("step", 26, 27, recovered=True), made.step(26, 8, spec=True), made.step(27, 8, spec=True)]
    first += [Gap("step", 28, 30, recovered=False), Malformed("payload of 3 bytes is not a step event", 3, "step", 31)]
    first += [made.alert(seq=1, t=made.T0 + 3.2), made.prefill(32)]
    dropped = DropEvent(boot_id=BOOTS[0], seq=1, t=made.T0 + 3.3, topic="step", first_seq=28, count=3, total=3)
    arrived = RequestEvent(boot_id=BOOTS[0], seq=1, step=32, t=made.T0 + 3.3, request_id="r1", phase="arrived")
    ended = RequestEvent(
        boot_id=BOOTS[0],
        seq=2,
        step=33,
        t=made.T0 + 3.4,
        request_id="r1",
        phase="finished",
        finish_reason="stop",
        accept_length=2.4,
    )
    first += [dropped, arrived, ended, Restart(*BOOTS)]
    t1 = made.T0 + 10
    second: list[Received] = [made.hello(boot_id=BOOTS[1], t=t1, seq=1)]
    second += [made.step(number, 3, boot_id=BOOTS[1], t=t1 + number * 0.1) for number in range(1, 31)]
    return first + second


def write(
    path: Path,
    items: Iterable[Received] | None = None,
    *,
    topics: Collection[str] = tuple(TOPICS),
    flush_every: int = 10,
    finish: bool = True,
    note: str = "made",
) -> Path:
    """A recording of these items (of ``session()``); unfinished, its file is closed as a kill closes it."""
    clock = FakeClock(made.T0)
    items = list(session() if items is None else items)
    writer = RecordingWriter(path, topics, note=note, clock=clock)
    if items and isinstance(items[0], HelloEvent):
        writer.begin(items.pop(0))  # type: ignore[arg-type]
    for number, item in enumerate(items, 1):
        if isinstance(item, Restart):
            clock.advance(6.7)  # about what the events' own times say
        if writer.write(item) or number % flush_every == 0:
            writer.sink.flush()
    if finish:
        writer.bookmark("the end")
        writer.finish()
        return path
    writer.sink.flush()
    writer.sink.file.close()
    return writer.sink.file.part

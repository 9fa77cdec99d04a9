"""Prompts and answers reach a recording only when it was asked to have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.events import Event, RequestEvent, RequestRow, RowsEvent
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import write
from workbench.recording.reader import Recording
from workbench.recording.request_tokens import without_tokens
from workbench.recording.verify import verify
from workbench.recording.writer import RecordingWriter

ROW = RequestRow(request_id="r", width=1, committed=4, emitted=1, correct=None, draft_lag=0, token_ids=[77001])
EVENTS: list[Event] = [
    RequestEvent(
        boot_id=made.BOOT,
        seq=1,
        step=0,
        t=made.T0,
        request_id="r",
        phase="arrived",
        prompt_token_ids=[77002],
        sampling={"stop": ["secret"], "temperature": 0.5},
        seed=77003,
    ),
    RowsEvent(boot_id=made.BOOT, seq=1, step=1, t=made.T0, rows=[ROW]),
    RequestEvent(
        boot_id=made.BOOT, seq=2, step=1, t=made.T0, request_id="r", phase="finished", output_token_ids=[77004]
    ),
]


@pytest.mark.parametrize("with_requests", [False, True])
def test_tokens_are_written_only_when_asked_for(tmp_path: Path, with_requests: bool) -> None:
    path = tmp_path / "x.mcap"
    writer = RecordingWriter(path, ("request", "rows"), with_requests=with_requests)
    writer.begin(made.hello())
    for event in EVENTS:
        writer.write(event)
    writer.finish()
    with Recording.open(path) as recording:
        read = [item for _, item in recording.items(topics=("request", "rows"))]
        text = b"".join(bytes(m.data) for n in range(len(recording.index)) for m in recording.contents(n).messages)
    assert list(verify(path)) == []
    if with_requests:
        assert read == EVENTS
    else:
        assert read == [without_tokens(event) for event in EVENTS]
        for word in (b"7700", b"secret", b"prompt_token_ids", b"output_token_ids", b"seed", b"sampling"):
            assert word not in text


def test_events_without_tokens_are_left_alone(tmp_path: Path) -> None:
    for event in (made.step(1), made.alert()):
        assert without_tokens(event) is event
    assert list(verify(write(tmp_path / "x.mcap", [made.hello(), EVENTS[0]]))) == []

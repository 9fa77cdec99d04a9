"""What counts as a switch, and that whoever counts them comes to the same number."""

from __future__ import annotations

from pathlib import Path

from probes.checks import METRICS, Tally, read
from probes.events import StepEvent
from probes.subscriber import Received, Restart
from probes.switches import SwitchCounter
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import write
from workbench.recording.reader import Recording
from workbench.tui.session_state import SessionState


def story() -> list[Received]:
    """Two switches: a prompt's step, a step that had nothing left to draft for, and a restart are none."""
    return [
        made.hello(),
        made.step(1, 2),
        made.prefill(2),
        made.step(3, 2, spec=False, reason="near_end"),
        made.step(4, 2),
        made.step(5, 8),
        made.step(6, 8, spec=False, mode="mixed"),
        made.step(7, 2),
        Restart("b7f3a9c2", "c0ffee01"),
        made.step(1, 8, boot_id="c0ffee01", t=made.T0 + 9),
    ]


def test_only_decisions_are_switches() -> None:
    switches = SwitchCounter()
    seen = [switches.see(item) for item in story() if isinstance(item, StepEvent) and item.boot_id == made.BOOT]
    assert seen == [False, False, False, False, True, False, True]
    assert switches.count == 2
    switches.forget()
    assert not switches.see(made.step(1, 8))


def test_a_check_a_recording_and_the_screen_count_the_same(tmp_path: Path) -> None:
    tally, screen = Tally(), SessionState()
    for item in story():
        tally.add(item)
        screen.apply(item, 0.0)
    with Recording.open(write(tmp_path / "x.mcap", story())) as recording:
        marks = [mark.text for mark in recording.marks() if mark.kind == "switch"]
    assert [text.partition(":")[0] for text in marks] == ["spec → plain", "plain → spec"]
    assert read(METRICS["switches"], tally).value == screen.decisions.switches == len(marks)

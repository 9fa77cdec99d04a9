"""A recorder that is killed leaves nearly everything."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from probes.events import StepEvent
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine
from workbench.recording.reader import Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.repair import repair
from workbench.recording.verify import verify

ROOT = Path(__file__).parents[3]
BATCH, BATCHES = 4, 5
MOST_S = 3.0
"""Far more than the 0.3 s that a recorder promises: on a busy machine it may not have been given the time to write."""


@contextmanager
def load(engine: MadeEngine) -> Iterator[None]:
    """Some hundred steps a second."""
    stop = threading.Event()

    def run() -> None:
        for requests in itertools.cycle(range(1, 9)):
            engine.step(requests)
            if stop.wait(0.003):
                return

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


def steps_in(path: Path) -> list[StepEvent]:
    try:
        with Recording.open(path) as opened:
            return [item for _, item in opened.items(topics=("step",)) if isinstance(item, StepEvent)]
    except RecordingError:
        return []


@pytest.mark.slow
def test_twenty_recorders_killed_at_random(make_engine: MakeEngine, tmp_path: Path) -> None:
    """Each file opens, says that something is missing, lacks at most its last moments, and can be repaired."""
    engine, rng = make_engine("made"), random.Random(11)
    with load(engine):
        for batch in range(BATCHES):
            paths = [tmp_path / f"{batch}-{number}.mcap" for number in range(BATCH)]
            parts = [path.with_name(path.name + ".part") for path in paths]
            programs = [
                subprocess.Popen([sys.executable, "-m", "workbench", "record", "made", "-o", str(path)], cwd=ROOT)
                for path in paths
            ]
            killed_at = []
            for process, part in zip(programs, parts, strict=True):
                deadline = time.monotonic() + 30
                while not steps_in(part):
                    assert time.monotonic() < deadline, f"{part.name} has no step after 30 s"
                    time.sleep(0.05)
                time.sleep(rng.uniform(0, 0.4))
                killed_at.append((engine.bus.t(), engine.next_step))
                process.kill()
                process.wait()
            for part, (t, number) in zip(parts, killed_at, strict=True):
                check(part, t, number)


def check(part: Path, t: float, number: int) -> None:
    """The file of a recorder that was killed at the engine's time ``t``, when ``number`` was its next step."""
    steps = steps_in(part)
    first, last = steps[0].step, steps[-1]
    assert [step.step for step in steps] == list(range(first, first + len(steps)))
    assert last.step < number + 100
    assert t - last.t < MOST_S, f"{part.name}: the last {t - last.t:.2f} s are missing"
    with Recording.open(part) as opened:
        assert "the recorder was killed" in opened.info.missing
    target = part.with_name(f"{part.name}.repaired.mcap")
    result = repair(part, target)
    assert result.saved >= len(steps)
    assert list(verify(target)) == []

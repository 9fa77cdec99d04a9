"""Watching a real bus from now on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.checks import METRICS, Tally, WentSilent, read, watch
from probes.events import KvUse, RequestEvent
from tests.workbench import made_events
from tests.workbench.made_engine import MadeEngine

POOLS = {"target": KvUse(used=0, total=1024), "draft": KvUse(used=0, total=1024)}


@pytest.fixture
def engine(runtime: Path) -> Iterator[MadeEngine]:
    with MadeEngine("made") as engine:
        yield engine


class Once(ABC):
    """Progress that does something at its first call: by then the watch has begun, and it has not ended."""

    def __init__(self, engine: MadeEngine) -> None:
        self.engine = engine
        self.calls = 0

    def __call__(self, elapsed: float, tally: Tally) -> None:
        self.calls += 1
        if self.calls == 1:
            self.act()

    @abstractmethod
    def act(self) -> None:
        """What happens once."""


def test_a_reader_that_comes_late_counts_from_now_on(engine: MadeEngine) -> None:
    """B90: none of the steps after its start is missing, none from before is counted."""

    class Load(Once):
        def act(self) -> None:
            t = engine.bus.t()
            engine.publish(
                RequestEvent(boot_id=engine.boot_id, step=51, t=t, request_id="r", phase="first_token", ttft_ms=12.0)
            )
            for _ in range(5):
                engine.step(kv=POOLS)
            engine.idle()

    for _ in range(50):
        engine.step()
    progress = Load(engine)
    tally = watch(engine.record, 1.5, progress=progress)
    values = {name: read(metric, tally).value for name, metric in METRICS.items()}
    assert progress.calls > 1
    assert values["steps"] == 5
    assert values["ttft_ms_p50"] == 12
    assert values["gaps"] == values["lost"] == 0
    assert values["slots_leaked"] == 0, "the engine is idle after its last step, and its pools are empty"
    assert tally.span >= 1.5


def test_an_engine_still_at_work_is_not_called_idle(engine: MadeEngine) -> None:
    class Load(Once):
        def act(self) -> None:
            engine.step(kv=POOLS)

    tally = watch(engine.record, 0.5, progress=Load(engine))
    assert tally.steps == 1
    assert tally.slots_leaked == "the engine was not idle at the end"


def test_an_engine_that_ends_is_no_measurement(engine: MadeEngine) -> None:
    class End(Once):
        def act(self) -> None:
            self.engine.bus.close()

    with pytest.raises(WentSilent, match="silent"):
        watch(engine.record, 4.0, progress=End(engine))


def test_an_engine_without_work_is_known_to_be_simulated(runtime: Path) -> None:
    with MadeEngine("sim", config=made_events.SIMULATED) as engine:
        tally = watch(engine.record, 0.3)
    assert tally.steps == 0
    assert tally.simulation == made_events.SIMULATION

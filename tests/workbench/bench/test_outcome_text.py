"""The table and the JSON of runs on a GPU: how much of its time it waited, and which steps missed their graph."""

from __future__ import annotations

from typing import Any

import pytest

from probes.gpu_time import GpuShare
from workbench.bench.answer import Answer, Usage
from workbench.bench.endpoint import Endpoint
from workbench.bench.metrics import Run, figures
from workbench.bench.outcome_text import outcome_lines
from workbench.bench.plan import Level, Setting
from workbench.bench.report import report
from workbench.bench.session import Options, Outcome
from workbench.bench.workload import RandomWords

LEVEL = Level(4)
OPTIONS = Options(levels=[LEVEL], modes=[], rounds=1, requests=4, duration=None, seed=0)


def run(**gpu: Any) -> Run:
    return Run(1.0, [Answer(0.0, 1.0, usage=Usage(completion_tokens=100))], **gpu)


def on_gpu(**changes: Any) -> Run:
    return run(**{"gpu": GpuShare(idle=20, busy=980), "graph_hits": 99, "graph_misses": 0} | changes)


def text(*runs: Run, **outcome: Any) -> str:
    settings = [(Setting(LEVEL, None, number), each) for number, each in enumerate(runs)]
    return "\n".join(outcome_lines(Outcome(settings, **outcome), OPTIONS))


def test_the_gpus_idle_share_has_a_column_where_there_is_a_gpu() -> None:
    header, row = text(on_gpu()).splitlines()[:2]
    assert header.split()[-2:] == ["gpu", "idle"]
    assert row.split()[-1] == "2.0%"
    assert "by CUDA events" in text(on_gpu())
    assert "gpu" not in text(run())


def test_missed_graphs_are_a_note_that_says_how_many() -> None:
    assert "graph misses, 4 clients: 3 steps ran eager" in text(on_gpu(graph_misses=3))
    assert "graph misses" not in text(on_gpu())


def test_rounds_are_summed_not_averaged() -> None:
    found = figures([on_gpu(), on_gpu(gpu=GpuShare(idle=980, busy=20_020), graph_misses=2)])
    assert found["gpu_idle"] == pytest.approx(1000 / 22_000)
    assert found["graph_misses"] == 2
    none = figures([run()])
    assert (none["gpu_idle"], none["graph_misses"]) == (None, None)


def test_the_word_stands_above_the_table_and_over_the_bars() -> None:
    lines = text(run(), simulation="random weights").splitlines()
    assert lines[0] == "SIMULATED: random weights: no figure here says what a real model does"
    assert "output tok/s, SIMULATED" in lines
    assert "SIMULATED" not in text(run())


def test_each_result_of_the_report_says_it_by_itself() -> None:
    """Results are taken out of the file, and compared with others."""
    outcome = Outcome([(Setting(LEVEL, None, 0), on_gpu())], simulation="random weights")
    made = report(outcome, OPTIONS, RandomWords(8, 8, 0), Endpoint("http://127.0.0.1:1/v1", model="m"), "today")
    assert (made["simulated"], made["simulation"]) == (True, "random weights")
    (result,) = made["results"]
    assert (result["simulated"], result["gpu_idle"], result["graph_misses"]) == (True, 0.02, 0)

"""A launch on a GPU waits for nothing: torch itself says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from engine.device.worker import DeviceWorker
from engine.event_sink import MemorySink
from engine.sampling_params import SamplingParams
from probes.knobs import Knobs
from tests.gpu.engines import CHAIN, TREE, device_engine, needs_graphs, prompts, steps_of, tiny, tokens_of


@needs_graphs
@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "eager"])
@pytest.mark.parametrize("shape", [CHAIN, TREE], ids=["chain", "tree"])
def test_a_launch_never_synchronises(graphs: bool, shape: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, mixed, speculating and prefill steps, greedy and drawn, with rings emptied at both ends.

    Captures between steps do wait; none is left to make here, so knobs keep the shape that was prepared.
    """
    launch = DeviceWorker.launch

    def guarded(self: DeviceWorker, *args: Any) -> Any:
        torch.cuda.set_sync_debug_mode("error")
        try:
            return launch(self, *args)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    sink = MemorySink()
    llm = device_engine(
        tiny(),
        sink,
        graphs=graphs,
        graph_batch_sizes=(1, 2, 3, 4, 5, 6, 7, 8),
        max_running=8,
        prefill_chunk=64,
        knobs=msgspec.structs.replace(Knobs(spec="on"), **shape),
    )
    params = [
        SamplingParams(max_tokens=80, temperature=t, top_p=0.9, seed=i, ignore_eos=True, logprobs=2)
        for i, t in enumerate([0.0, 1.0] * 4)
    ]
    steps = iter(range(1 << 30))

    def switch(llm: Any) -> None:
        llm.set_knobs(spec="on" if next(steps) % 100 >= 70 else "off")

    tokens_of(llm.generate(prompts(8), params, switch))  # compiles what no graph holds
    monkeypatch.setattr(DeviceWorker, "launch", guarded)
    steps = iter(range(1 << 30))
    tokens_of(llm.generate(prompts(8), params, switch))
    assert {step.mode for step in steps_of(sink)} == {"plain", "spec", "prefill", "mixed"}

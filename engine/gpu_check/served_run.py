"""One run of the workload: requests that all come at once, and what the engine's own events say of it."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from engine.gpu_check.engines import capture
from engine.gpu_check.switched_sink import SwitchedSink
from engine.ipc import Failed
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from probes.events import StepEvent
from probes.gpu_time import share_of

Figures = dict[str, Any]


def random_prompts(count: int, length: int, vocab: int, seed: int = 0) -> list[list[int]]:
    """``count`` prompts of ``length`` random tokens, no two alike."""
    rng = random.Random(seed)
    return [[rng.randrange(vocab) for _ in range(length)] for _ in range(count)]


def serve(llm: LLM, sink: SwitchedSink, prompts: list[list[int]], output: int, turn: int = 0) -> Figures:
    """Greedy, to the full length, prefill included, all prompts at once; tokens are counted, not turned into text.

    ``sink``: the engine's own. Its events are read where it keeps them. ``turn``: runs of the same turn have the same
    seeds, so that simulated acceptance, which is drawn from them, is the same on both sides of a pair.

    Raises:
        RuntimeError: a request failed, or did not get its tokens.
    """
    core = llm.core
    params = [
        SamplingParams(max_tokens=output, temperature=0.0, ignore_eos=True, seed=turn * len(prompts) + i)
        for i in range(len(prompts))
    ]
    sink.kept.clear()
    tokens = 0
    began = time.perf_counter()
    for i, prompt in enumerate(prompts):
        core.add(f"check-{i}", prompt, params[i])
    try:
        while core.has_work:
            for given in core.step():
                if isinstance(given, Failed):
                    raise RuntimeError(f"a request failed: {given.message}")
                tokens += len(given.token_ids)
    except BaseException:
        core.abort_all()
        raise
    seconds = time.perf_counter() - began
    core.idle()
    if tokens != len(prompts) * output:
        raise RuntimeError(f"{len(prompts)} requests of {output} tokens gave {tokens}")
    return {
        "rate": tokens / seconds,
        "seconds": seconds,
        **figures([event for event in sink.kept if isinstance(event, StepEvent)]),
    }


def figures(steps: list[StepEvent]) -> Figures:
    """What a run's step events come to: steps by mode, accept length, times by stage, graph misses, GPU idle.

    ``idle``: share of the device's time between steps, None where it has no clock. ``gpu_us`` and ``cpu_us`` are sums.
    """
    verified = sum(step.verified for step in steps)
    modes: dict[str, int] = {}
    for step in steps:
        modes[step.mode] = modes.get(step.mode, 0) + 1
    return {
        "steps": modes,
        "accept": 1 + sum(step.correct_drafts for step in steps) / verified if verified else None,
        "idle": share_of(steps).value,
        # Before a run's first step the device waited for the run, not for the host.
        "gpu_us": _sums(step.gpu_us for step in steps if step.round_us),
        "cpu_us": _sums(step.cpu_us for step in steps),
        "graph_misses": sum(step.graph_hit is False for step in steps),
        "median_round_us": statistics.median([step.round_us for step in steps if step.round_us] or [0]),
    }


def _sums(times: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for stages in times:
        for stage, took in stages.items():
            sums[stage] = sums.get(stage, 0) + took
    return sums


class Side:
    """One way of serving one load, run again and again."""

    def __init__(
        self, llm: LLM, sink: SwitchedSink, knobs: dict[str, str | int], prompts: list[list[int]], output: int
    ) -> None:
        self._llm, self._sink, self._knobs = llm, sink, knobs
        self._prompts, self._output = prompts, output
        self._runs: list[Figures] = []

    def rate(self) -> float:
        """Output tokens a second of one run."""
        self._turn()
        self._runs.append(serve(self._llm, self._sink, self._prompts, self._output, turn=len(self._runs)))
        rate: float = self._runs[-1]["rate"]
        return rate

    def warm_up(self) -> None:
        """A run that does not count: kernels are compiled in it. Graphs are captured before."""
        self._turn()
        capture(self._llm)
        self.rate()
        self._runs.clear()

    def _turn(self) -> None:
        if self._knobs:
            self._llm.set_knobs(**self._knobs)

    def column(self) -> Figures:
        """``rate``: the median; ``rates``: all; the rest of the run with that rate, or the one below it."""
        by_rate = sorted(self._runs, key=lambda run: float(run["rate"]))
        middle = by_rate[(len(by_rate) - 1) // 2]
        rates = [round(run["rate"], 2) for run in self._runs]
        return {**middle, "rate": statistics.median(rates), "rates": rates}

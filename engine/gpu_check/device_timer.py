"""How long work takes on the device itself: captured in a CUDA graph, so that no launch of the CPU's is in it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

REPEATS = 20


def median_ms(work: Callable[[], object], device: str, repeats: int = REPEATS, graph: bool = True) -> float:
    """Median milliseconds of ``work``, which must always do the same to the same tensors.

    On CUDA ``graph`` captures it once and times replays; without, launches are in the time if they are the slower part.
    """
    if device != "cuda":
        return statistics.median(_cpu_ms(work) for _ in range(min(repeats, 3)))
    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):  # kernels are compiled, handles and workspaces made
            work()
    torch.cuda.current_stream().wait_stream(warm_up)
    run = work
    if graph:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            work()
        run = captured.replay
    for _ in range(2):
        run()
    began = [torch.cuda.Event(enable_timing=True) for _ in range(repeats)]
    ended = [torch.cuda.Event(enable_timing=True) for _ in range(repeats)]
    for before, after in zip(began, ended, strict=True):
        before.record()
        run()
        after.record()
    torch.cuda.synchronize()
    took: list[float] = [before.elapsed_time(after) for before, after in zip(began, ended, strict=True)]
    return statistics.median(took)


CALLS = 20
"""In one graph, so that a graph's own launch is spread over them."""


def median_us(call: Callable[[], object], device: str) -> float:
    """Median microseconds of a call that takes too few to be timed alone."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    return median_ms(calls, device, repeats=7) * 1e3 / CALLS


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3

"""Where the time of a row goes that missed its bar: device time by kernel, and how much of the time it was busy."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch._C._autograd import DeviceType

from engine.gpu_check.bars import CLIENTS, LEAST_OF_FLOOR, LEAST_RATE, plain_floor, rates
from engine.gpu_check.check_file import CheckFile
from engine.gpu_check.engines import column_knobs, eagle, plain
from engine.gpu_check.served_run import random_prompts
from engine.gpu_check.session import Session, Skip
from engine.sampling_params import SamplingParams

STEPS = 12
TOP = 14

Span = tuple[float, float]
"""Begin and end, microseconds."""


def run(session: Session) -> None:
    """Cells ``profile/COLUMN/CLIENTS``, for what missed its rate or its share of the floor."""
    for column, clients in missed(session.file):
        session.cell(f"profile/{column}/{clients}", partial(profile, session, column, clients), 25.0)


def missed(file: CheckFile) -> list[tuple[str, int]]:
    """Columns and loads that are measured and not good enough; of ``--quick``, where no rate is asked for, the last."""
    if file.sizes.get("name") != "full":
        return [("eagle3", file.sizes["clients"][-1])]
    found = []
    for name, least in LEAST_RATE.items():
        for clients, bar in zip(CLIENTS, least, strict=True):
            column = rates(file, clients).get(name)
            if column is None:
                continue
            floor = plain_floor(file, clients) if name == "plain" else None
            if column["rate"] < bar or (floor and column["rate"] < LEAST_OF_FLOOR * floor):
                found.append((name, clients))
    return found


def profile(session: Session, column: str, clients: int) -> dict[str, Any]:
    """A prefill, and STEPS steps of decoding after it.

    Raises:
        Skip: no GPU: there are no kernels.
    """
    if session.device != "cuda":
        raise Skip("needs a GPU")
    llm, _ = plain(session) if column == "plain" else eagle(session)
    if column != "plain":
        llm.set_knobs(**column_knobs(column))
    core = llm.core
    params = SamplingParams(max_tokens=session.sizes.output, temperature=0.0, ignore_eos=True)
    try:
        for i, prompt in enumerate(random_prompts(clients, session.sizes.prompt, core.shape.vocab_size)):
            core.add(f"profile-{i}", prompt, params)
        prefill = _traced(lambda: _until_decoding(core))
        for _ in range(3):
            core.step()
        decode = _traced(lambda: [core.step() for _ in range(STEPS)])
    finally:
        core.abort_all()
        while core.has_work:
            core.step()
        core.idle()
    return {"steps": STEPS, "decode": decode, "prefill": prefill}


def _until_decoding(core: Any) -> None:
    while core.scheduler.waiting or any(request.in_prefill for request in core.scheduler.running):
        core.step()


def _traced(work: Any) -> dict[str, Any]:
    """Run it under torch's profiler; kernels only, so that the host is slowed down little."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        wall_us = (time.perf_counter() - began) * 1e6
    spans = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in trace.events()
        if event.device_type == DeviceType.CUDA
    ]
    return kernel_table(spans, wall_us)


def kernel_table(spans: Iterable[tuple[str, float, float]], wall_us: float) -> dict[str, Any]:
    """The kernels that took longest, and the share of the time from the first to the last in which any ran."""
    took: dict[str, list[float]] = defaultdict(list)
    ranges: list[Span] = []
    for name, began, ended in spans:
        took[name].append(ended - began)
        ranges.append((began, ended))
    window = max((end for _, end in ranges), default=0.0) - min((begin for begin, _ in ranges), default=0.0)
    busy = _covered(ranges)
    rows = sorted(((sum(each), len(each), name) for name, each in took.items()), reverse=True)
    return {
        "wall_ms": round(wall_us / 1e3, 3),
        "window_ms": round(window / 1e3, 3),
        "busy": round(busy / window, 4) if window else None,
        "launches": len(ranges),
        "top": [
            {"kernel": name[:90], "ms": round(total / 1e3, 3), "calls": calls, "share": round(total / busy, 4)}
            for total, calls, name in rows[:TOP]
        ],
    }


def _covered(ranges: list[Span]) -> float:
    """Length of the union."""
    covered, reached = 0.0, float("-inf")
    for began, ended in sorted(ranges):
        covered += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return covered

"""A benchmark's outcome as JSON, with the field's names and all that it takes to read the figures again later."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from typing import Any

from probes.discovery import EngineRecord
from probes.events import HelloEvent
from workbench.bench.comparison import Comparison, compare
from workbench.bench.endpoint import Endpoint
from workbench.bench.metrics import Run, figures
from workbench.bench.plan import Level
from workbench.bench.session import Options, Outcome
from workbench.bench.workload import Workload

SCHEMA = 1
"""Of the JSON: fields may be added, their meanings never change."""


def comparisons(outcome: Outcome, options: Options) -> list[tuple[Level, Comparison]]:
    """What the modes come to, level by level; of whole runs only."""
    return [
        (level, found)
        for level in options.levels
        for found in compare({mode: outcome.whole(level, mode) for mode in options.modes})
    ]


def report(
    outcome: Outcome,
    options: Options,
    workload: Workload,
    endpoint: Endpoint,
    date: str,
    record: EngineRecord | None = None,
    hello: HelloEvent | None = None,
) -> dict[str, Any]:
    """The whole outcome. ``record``, ``hello``: of an engine with a bus; None for a foreign endpoint."""
    modes: Sequence[str | None] = options.modes or [None]
    return {
        "benchmark": "specwb bench",
        "schema": SCHEMA,
        "date": date,
        "specwb_version": importlib.metadata.version("specwb"),
        "stopped_by": outcome.stopped_by or None,
        "simulated": bool(outcome.simulation),
        "simulation": outcome.simulation or None,
        "endpoint": {
            "base_url": endpoint.url,
            "model_id": endpoint.model or (record.model if record else None),
            "engine": record.name if record else None,
            "speaks_extensions": endpoint.speaks_extensions,
        },
        "environment": None if hello is None else environment(hello),
        "client": {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()},
        "workload": {
            **workload.described(),
            "requests": options.requests,
            "duration": options.duration,
            "arrivals": "closed" if options.levels[0].clients is not None else "poisson",
            "arrival_seed": options.seed,
            "modes": options.modes,
            "rounds": options.rounds,
        },
        "results": [
            result(
                level,
                mode,
                outcome.of(level, mode),
                is_bus=hello is not None,
                is_simulated=bool(outcome.simulation),
            )
            for level in options.levels
            for mode in modes
            if outcome.of(level, mode)
        ],
        "ratios": [
            {"max_concurrency": level.clients, "request_rate": level.rate, **found.as_json()}
            for level, found in comparisons(outcome, options)
        ],
    }


def environment(hello: HelloEvent) -> dict[str, Any]:
    """What ran, by the engine's own word."""
    return {
        "engine": hello.name,
        "engine_version": hello.engine_version,
        "boot_id": hello.boot_id,
        "model": hello.model,
        "dtype": hello.model.get("dtype"),
        "draft": hello.draft,
        "knobs": hello.knobs,
        "config": hello.config,
        "which": hello.which,
    }


def result(
    level: Level, mode: str | None, runs: Sequence[Run], *, is_bus: bool, is_simulated: bool = False
) -> dict[str, Any]:
    """One setting: all its rounds as one, and what each came to."""
    duration = sum(run.duration for run in runs)
    cpu = sum(run.client_cpu_s for run in runs)
    return {
        "max_concurrency": level.clients,
        "request_rate": level.rate,
        "mode": mode,
        "rounds": len(runs),
        "interrupted": any(run.is_partial for run in runs),
        "simulated": is_simulated,
        **figures(runs),
        "engine_steps": sum(run.steps or 0 for run in runs) if is_bus else None,
        "engine_emitted_tokens": sum(run.emitted for run in runs) if is_bus else None,
        "client_cpu_share": cpu / duration if duration > 0 else None,
        "output_throughput_by_round": [run.output_throughput for run in runs],
        "accept_length_by_round": [run.accept_length for run in runs],
        "notes": list(dict.fromkeys(note for run in runs for note in run.notes)),
    }

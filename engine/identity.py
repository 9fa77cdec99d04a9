"""Who the engine is and what really runs in it: the hello event."""

from __future__ import annotations

import inspect
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import torch

from engine.assembly import Assembly
from engine.kv.ledger import KvLedger
from engine.self_check import SelfCheck
from engine.spec.draft_sync import LAZY_ROWS
from probes.events import HelloEvent

_ROOT = Path(__file__).resolve().parent.parent

_SYNC_WORDS = {
    "lazy": f"up to {LAZY_ROWS} rows a request wait, written when full or when speculation resumes",
    "eager": "written in every step",
    "sticky": "not kept: a request that fell back to plain stays plain",
}


@cache
def engine_version() -> str:
    """Version of the installed package."""
    try:
        return version("specwb")
    except PackageNotFoundError:
        return "not installed"


def defined_at(thing: type | object) -> str:
    """``module:Class (file:line)`` of a class, or of an object's class."""
    return _place_of(thing if isinstance(thing, type) else type(thing))


@cache  # finding a class parses its file: 150 ms for a hello's, in the bus's thread, while the engine runs
def _place_of(cls: type) -> str:
    path = Path(inspect.getsourcefile(cls) or "?").resolve()
    shown = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path
    return f"{shown}:{inspect.getsourcelines(cls)[1]}"


def _entry(value: str, thing: type | object, why: str) -> dict[str, str]:
    return {"value": value, "defined": defined_at(thing), "why": why}


def _none(why: str) -> dict[str, str]:
    return {"value": "none", "defined": "", "why": why}


def what_runs(assembly: Assembly) -> dict[str, Any]:
    """Role -> {value, defined, why}: what ``specwb which`` prints."""
    core, config, why = assembly.core, assembly.config, assembly.why
    knobs, worker, attention = core.knobs.knobs, core.worker, assembly.attention
    algorithm, draft_sync = _none(f"every step is plain: {assembly.why_no_draft}"), _none("no draft model is loaded")
    if worker.algorithm is not None:
        drafter = getattr(worker, "proposer", worker)
        head = assembly.draft.name if assembly.draft is not None else worker.algorithm
        algorithm = _entry(worker.algorithm, drafter, f"draft model {head} is loaded")
        draft_sync = _entry(knobs.draft_sync, drafter, _SYNC_WORDS[knobs.draft_sync])
    lands_first = core.overlap and worker.needs_landed
    roles = {
        "worker": _entry(worker.name, worker, why["worker"]),
        "scheduler": _entry(
            core.scheduler.name,
            core,
            why["scheduler"] + ("; not after a verify: attention plans with exact lengths" if lands_first else ""),
        ),
        "algorithm": algorithm,
        "policy": _entry(
            core.policy.name,
            core.policy,
            f"spec={knobs.spec}, threshold {knobs.threshold}, resumes at {knobs.resume_at}"
            + ("; started with the threshold measured for this arithmetic" if config.measured_threshold else ""),
        ),
        "attention": _entry(attention.name, attention.runs, attention.why),
        "graphs": _graphs(assembly),
        "draft_sync": draft_sync,
        "kv": _entry(
            f"{core.ledger.total} slots in pages of {core.ledger.page_size}",
            KvLedger,
            "one page table for target and draft; a request is admitted when its worst case fits",
        ),
        "arithmetic": _entry(assembly.arithmetic.name, assembly.arithmetic, assembly.arithmetic.why),
        "device": {"value": assembly.device_name, "defined": "", "why": f"--device {config.device}"},
    }
    if assembly.memory is not None:
        roles["memory"] = _entry(assembly.memory.headline, assembly.memory, assembly.memory.text)
    if config.simulated:
        roles["simulated"] = _entry("yes", config, config.simulated)
    return roles


def _graphs(assembly: Assembly) -> dict[str, str]:
    """CUDA graphs: how many stand ready, or why there are none."""
    config, graphs = assembly.config, getattr(assembly.core.worker, "graphs", None)
    if graphs is not None and graphs.captures:
        sizes = ", ".join(str(size) for size in graphs.batches)
        return _entry(
            f"{len(graphs.ready)} captured, {graphs.memory / 2**20:.0f} MiB",
            graphs,
            f"for batches of {sizes}; a step of other sizes runs kernel by kernel and is counted",
        )
    if config.device == "cpu":
        return _none("the CPU has none: every step runs kernel by kernel")
    if not config.graphs:
        return _none("started with --no-graphs: every step runs kernel by kernel")
    return _none(f"attention {assembly.attention.name} cannot be captured: every step runs kernel by kernel")


def hello_of(assembly: Assembly, name: str, check: SelfCheck | None, t: float) -> HelloEvent:
    """The hello event of an engine as it is now."""
    core, target, draft = assembly.core, assembly.target, assembly.draft
    config = msgspec.to_builtins(assembly.config)
    config.pop("knobs")
    return HelloEvent(
        boot_id=core.boot_id,
        t=t,
        name=name,
        engine_version=engine_version(),
        pid=os.getpid(),
        model={
            "name": target.name,
            "architecture": "llama",
            "parameters": assembly.parameters,
            "dtype": assembly.arithmetic.name,
            "weights": assembly.arithmetic.weights,
            "half_precision": assembly.arithmetic.half_precision,
            "device": config["device"],
            "device_name": assembly.device_name,
            "threads": torch.get_num_threads(),
            "context_length": core.max_model_len,
            "source": target.source,
        },
        draft=None
        if draft is None
        else {
            "name": draft.name,
            "algorithm": "eagle3",
            "draft_vocab_size": draft.shape.draft_vocab_size,
            "aux_layers": list(draft.shape.aux_layers),
            "source": draft.source,
            "self_check_accept_length": check.accept_length if check is not None else None,
        },
        config=config,
        knobs=core.knobs.as_dict(),
        knob_epoch=core.knobs.knob_epoch,
        step=core.step_number,
        which=what_runs(assembly),
        simulated=bool(assembly.config.simulated),
        reverts=core.knobs.reverts,
    )

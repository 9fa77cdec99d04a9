"""The engines that a check drives: one without a head and one with, over the same random weights."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial
from typing import Any

from engine.config import EngineConfig
from engine.device.worker import DeviceWorker
from engine.gpu_check.session import Session, say
from engine.gpu_check.sizes import ACCEPT, CHAIN, DRAFT_SHAPES, THRESHOLD, torch_dtype
from engine.gpu_check.switched_sink import SwitchedSink
from engine.llm import LLM
from engine.models.checkpoint import load_draft, load_target
from probes.knobs import Knobs

Engine = tuple[LLM, SwitchedSink]


def shape_knobs(name: str) -> dict[str, str | int]:
    """The knobs of a draft's shape."""
    steps, topk, draft_tokens = DRAFT_SHAPES[name]
    return {"steps": steps, "topk": topk, "draft_tokens": draft_tokens}


def column_knobs(column: str) -> dict[str, str | int]:
    """The knobs of a column of the sweep, for the engine with the head."""
    chosen: dict[str, dict[str, str | int]] = {
        "eagle3": {"spec": "on"},
        "dynamic": {"spec": "auto", "threshold": THRESHOLD},
        "off": {"spec": "off"},
    }
    return {**chosen[column], **shape_knobs(CHAIN)}


def plain(session: Session) -> Engine:
    """Started without a draft model."""
    return both(session)[0]


def eagle(session: Session) -> Engine:
    """With a head, acceptance simulated; it starts switched off."""
    return both(session)[1]


def both(session: Session) -> tuple[Engine, Engine]:
    """The two, at once: what one takes of the device, the other does without too, whichever is measured."""
    return session.keep("both engines", partial(_make, session))


def config(session: Session, **more: Any) -> EngineConfig:
    """Start options of the random model in this check's sizes."""
    sizes = session.sizes
    base: dict[str, Any] = {
        "model": sizes.model,
        "weights": "random",
        "device": session.device,
        "worker": "device",
        "scheduler": "overlap",
        "dtype": sizes.dtype,
        "max_model_len": 2 * (sizes.prompt + sizes.output),
        "max_running": max(sizes.clients),
        "kv_tokens": sizes.kv_tokens,
        "prefill_chunk": sizes.prefill_chunk,
    }
    return EngineConfig(**{**base, **more})


def capture(llm: LLM) -> None:
    """Capture what the knobs now in force run, so that no run that counts does it."""
    worker = llm.core.worker
    assert isinstance(worker, DeviceWorker)
    worker.prepare(llm.core.knobs.knobs, say)


def _make(session: Session) -> tuple[Engine, Engine]:
    """The weights are made once. What an engine does not fuse is the checkpoint's own tensor, in both of them."""
    sizes = session.sizes
    dtype, device = torch_dtype(sizes.dtype), session.torch_device
    target = load_target(sizes.model, dtype=dtype, device=device)
    target = replace(target, tensors=dict(target.tensors))
    draft = load_draft("auto", target, dtype=dtype, device=device)
    knobs = Knobs(spec="off", **shape_knobs(CHAIN))  # type: ignore[arg-type]
    alone, beside = SwitchedSink(), SwitchedSink()
    without = LLM(target, config=config(session, draft_model="none", knobs=knobs), sink=alone)
    head = LLM(target, draft=draft, config=config(session, simulate_accept=ACCEPT, knobs=knobs), sink=beside)
    gc.collect()
    gc.freeze()  # as the engine process does behind its start
    return (without, alone), (head, beside)


def told(session: Session) -> dict[str, Any]:
    """What the two engines are made of: attention, graphs, memory."""
    found = {}
    for name, (llm, _) in zip(("plain", "eagle3"), both(session), strict=True):
        worker, plan = llm.core.worker, llm.assembly.memory
        assert isinstance(worker, DeviceWorker)
        found[name] = {
            "attention": llm.assembly.attention.name,
            "graphs": len(worker.graphs.ready),
            "graphs_mib": round(worker.graphs.memory / 2**20),
            "memory": plan.text if plan is not None else "",
        }
    return found

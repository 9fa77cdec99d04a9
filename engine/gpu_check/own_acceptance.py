"""The default model with its own head and its own acceptance: what speculation is worth where nothing is simulated."""

from __future__ import annotations

from functools import partial
from typing import Any

from engine.config import EngineConfig
from engine.gpu_check.engines import shape_knobs
from engine.gpu_check.exactness import DEFAULT_PROMPTS, load_default
from engine.gpu_check.served_run import Side
from engine.gpu_check.session import Session
from engine.gpu_check.sizes import CHAIN, DRAFT_SHAPES
from engine.gpu_check.sweep import compare
from engine.gpu_check.switched_sink import SwitchedSink
from engine.llm import LLM
from engine.measure.workload import read_prompts
from engine.models.checkpoint import load_draft, load_target
from probes.knobs import Knobs

CLIENTS = (1, 8, 64)
QUICK_CLIENTS = (2,)


def run(session: Session) -> None:
    """Cells ``own/SHAPE/CLIENTS``: on over off, by pairs."""
    quick = session.sizes.name == "quick"
    for name in (CHAIN,) if quick else DRAFT_SHAPES:
        for clients in QUICK_CLIENTS if quick else CLIENTS:
            session.cell(f"own/{name}/{clients}", partial(_gain, session, name, clients), 20.0)
    session.release("own engine")


def _gain(session: Session, name: str, clients: int) -> dict[str, Any]:
    llm, sink, prompts = session.keep("own engine", lambda: _engine(session))
    load = [prompts[i % len(prompts)] for i in range(clients)]
    on, off = (
        Side(llm, sink, {"spec": spec, **shape_knobs(name)}, load, session.sizes.output) for spec in ("on", "off")
    )
    return compare(on, off, session.sizes.pairs)


def _engine(session: Session) -> tuple[LLM, SwitchedSink, list[list[int]]]:
    """The engine with its sink, and the everyday prompts as token ids; ``--quick`` takes the tiny random model."""
    if session.sizes.name == "quick":
        target = load_target(session.sizes.model)
        draft, dtype = load_draft("auto", target), session.sizes.dtype
    else:
        target, draft = load_default(session)
        dtype = "bfloat16"
    texts = read_prompts(session.prompts or str(DEFAULT_PROMPTS))
    prompts = [target.chat_ids(text) for text in texts]
    most = max(len(ids) for ids in prompts) + session.sizes.output
    config = EngineConfig(
        device=session.device,  # type: ignore[arg-type]
        worker="device",
        scheduler="overlap",
        dtype=dtype,
        max_running=max(CLIENTS),
        max_model_len=most,
        kv_tokens=max(CLIENTS) * (most + 128),
        knobs=Knobs(spec="off"),
    )
    sink = SwitchedSink()
    return LLM(target, draft=draft, config=config, sink=sink), sink, prompts

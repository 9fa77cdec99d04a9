"""The engines that a check drives: one without a head and one with, of the same random model, made once a process."""

from __future__ import annotations

from functools import partial
from typing import Any

from engine.config import EngineConfig
from engine.gpu_check.session import Session
from engine.gpu_check.sizes import ACCEPT, CHAIN, DRAFT_SHAPES, THRESHOLD
from engine.gpu_check.switched_sink import SwitchedSink
from engine.llm import LLM
from probes.knobs import Knobs

Pair = tuple[LLM, SwitchedSink]


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
        "max_running": sizes.max_running,
        "kv_tokens": sizes.kv_tokens,
        "prefill_chunk": sizes.prefill_chunk,
    }
    return EngineConfig(**{**base, **more})


def plain(session: Session) -> Pair:
    """Started without a draft model."""
    return session.keep("plain engine", partial(_plain, session))


def eagle(session: Session) -> Pair:
    """With a head, acceptance simulated; it starts switched off. The target's weights are those of ``plain``."""
    return session.keep("eagle engine", partial(_eagle, session))


def _plain(session: Session) -> Pair:
    sink = SwitchedSink()
    return LLM(config=config(session, draft_model="none", knobs=Knobs(spec="off")), sink=sink), sink


def _eagle(session: Session) -> Pair:
    sink = SwitchedSink()
    knobs = Knobs(spec="off", **shape_knobs(CHAIN))  # type: ignore[arg-type]
    return LLM(config=config(session, simulate_accept=ACCEPT, knobs=knobs), sink=sink), sink

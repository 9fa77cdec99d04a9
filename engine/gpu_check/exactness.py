"""Exactness: what the device says against the CPU's own worker in float32, always on, always off, and switching."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.config import EngineConfig
from engine.gpu_check.bars import GAPS
from engine.gpu_check.engines import shape_knobs
from engine.gpu_check.session import Session, Skip
from engine.gpu_check.sizes import CHAIN, DRAFT_SHAPES
from engine.gpu_check.teacher_forcing import BeforeStep, differences, make_reference, summary
from engine.llm import LLM, Completion
from engine.measure.workload import read_prompts
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint, load_draft, load_target
from engine.models.checkpoint_error import CheckpointError
from probes.knobs import Knobs

DEFAULT_MODEL = "smollm2-135m"
DEFAULT_PROMPTS = Path(__file__).parents[2] / "workbench/demo/prompts.jsonl"
TINY = "tiny-random"
SCHEDULERS = ("overlap", "sync")
HOW = ("off", CHAIN, "tree 4/2/16", "switched before every step")


def run(session: Session) -> None:
    """Cells ``exact/DTYPE SCHEDULER, HOW``, of the default model; ``--quick`` takes the tiny one."""
    quick = session.sizes.name == "quick"
    for dtype in ("float32",) if quick else ("bfloat16", "float32"):
        compare(session, "exact", tiny_model if quick else default_model, dtype)


def run_smoke(session: Session) -> None:
    """Cells ``smoke/…``: the same of the tiny model in float32, with and without graphs, before anything long."""
    compare(session, "smoke", tiny_model, "float32")
    if session.device == "cuda":
        compare(session, "smoke", tiny_model, "float32", graphs=False)


def compare(
    session: Session,
    stage: str,
    make_model: Callable[[Session], tuple[TargetCheckpoint, DraftCheckpoint, list[list[int]]]],
    dtype: str,
    *,
    graphs: bool = True,
) -> None:
    """One engine a scheduler, every way of speculating on each."""
    kept = f"{stage} engine"
    for scheduler in SCHEDULERS:
        for how in HOW:

            def cell(scheduler: str = scheduler, how: str = how) -> dict[str, Any]:
                reference = session.keep(f"{stage} reference", lambda: _reference(session, make_model))
                llm = session.keep(kept, lambda: _engine(session, make_model, dtype, scheduler, graphs))
                return {"dtype": dtype, **_compared(reference, llm, how, GAPS[dtype])}

            name = f"{stage}/{dtype} {scheduler}{'' if graphs else ' eager'}, {how}"
            session.cell(name, cell, expect_s=25.0)
        session.release(kept)


def default_model(session: Session) -> tuple[TargetCheckpoint, DraftCheckpoint, list[list[int]]]:
    """The default model, its head, and prompts: the everyday ones in several wordings.

    Raises:
        Skip: its file is not on this machine.
    """
    target, draft = load_default(session)
    base = read_prompts(session.prompts or str(DEFAULT_PROMPTS))
    endings = ("", " Be brief.", " Explain your answer.", " Answer for a child.")
    texts = [f"{prompt}{ending}" for ending in endings for prompt in base]
    return target, draft, [target.chat_ids(text) for text in texts[: session.sizes.exact_prompts]]


def tiny_model(session: Session) -> tuple[TargetCheckpoint, DraftCheckpoint, list[list[int]]]:
    """The built-in random model and head, and random prompts of several lengths."""
    target = load_target(TINY)
    rng = random.Random(0)
    lengths = [1 + 7 * i for i in range(max(session.sizes.exact_prompts // 4, 2))]
    return target, load_draft("auto", target), [[rng.randrange(256) for _ in range(size)] for size in lengths]


def load_default(session: Session) -> tuple[TargetCheckpoint, DraftCheckpoint]:
    """The default model and its own head, from ``--model-file`` or from where ``specwb models fetch`` puts it.

    Raises:
        Skip: it is in neither place.
    """
    try:
        target = load_target(session.model_file or DEFAULT_MODEL)
    except CheckpointError as error:
        raise Skip(f"{error} Or give its GGUF with --model-file.") from error
    return target, load_draft(f"{DEFAULT_MODEL}-eagle3", target)


def _model(session: Session, make_model: Callable[[Session], Any]) -> Any:
    """Loaded once a process."""
    return session.keep(make_model.__name__, lambda: make_model(session))


def _reference(session: Session, make_model: Callable[[Session], Any]) -> list[Completion]:
    """The CPU's own worker, float32, no draft."""
    target, _, prompts = _model(session, make_model)
    config = EngineConfig(
        dtype="float32", worker="host", draft_model="none", max_model_len=1024, knobs=Knobs(spec="off")
    )
    return make_reference(LLM(target, config=config), prompts, session.sizes.exact_tokens)


def _engine(session: Session, make_model: Callable[[Session], Any], dtype: str, scheduler: str, graphs: bool) -> LLM:
    target, draft, prompts = _model(session, make_model)
    options: dict[str, Any] = {"dtype": dtype, "scheduler": scheduler, "graphs": graphs}
    config = EngineConfig(
        device=session.device,  # type: ignore[arg-type]
        worker="device",
        max_model_len=1024,
        max_running=len(prompts),
        kv_tokens=512 * len(prompts),
        knobs=Knobs(spec="off"),
        debug_checks=True,
        **options,
    )
    return LLM(target, draft=draft, config=config)


def _compared(reference: list[Completion], llm: LLM, how: str, limit: float) -> dict[str, Any]:
    before: BeforeStep | None = None
    if how == "switched before every step":
        before = switching(seed=1)
    elif how == "off":
        llm.set_knobs(spec="off")
    else:
        llm.set_knobs(spec="on", draft_sync="lazy", **shape_knobs(how))
    return summary(reference, *differences(reference, llm, before), limit)


def switching(seed: int) -> BeforeStep:
    """Draws speculation on or off, a shape and a way of draft sync before every step."""
    rng = random.Random(seed)
    shapes = [shape_knobs(name) for name in DRAFT_SHAPES]

    def before_step(llm: LLM) -> None:
        llm.set_knobs(
            spec=rng.choice(["on", "off"]), draft_sync=rng.choice(["lazy", "lazy", "eager"]), **rng.choice(shapes)
        )

    return before_step

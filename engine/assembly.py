"""From start options to a running core: load the files, build the models, choose the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from engine.config import EngineConfig
from engine.core import EngineCore
from engine.event_sink import EventSink
from engine.kv.ledger import KvLedger
from engine.models.checkpoint import CheckpointError, DraftCheckpoint, TargetCheckpoint, load_draft, load_target
from engine.models.eagle3 import Eagle3Head
from engine.models.linear import Arithmetic, choose_arithmetic
from engine.models.llama import LlamaModel
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.proposer import Proposer

Progress = Callable[[str], None]


@dataclass
class Assembly:
    """A core and what it was made from."""

    config: EngineConfig
    core: EngineCore
    target: TargetCheckpoint
    draft: DraftCheckpoint | None
    arithmetic: Arithmetic
    warnings: list[str] = field(default_factory=list)


def assemble(
    config: EngineConfig,
    *,
    sink: EventSink | None = None,
    boot_id: str = "",
    target: TargetCheckpoint | None = None,
    draft: DraftCheckpoint | None = None,
    proposer: Callable[[KvLedger], Proposer] | None = None,
    progress: Progress = lambda message: None,
) -> Assembly:
    """Build an engine. ``target``, ``draft`` and ``proposer`` replace what the config would load.

    Raises:
        CheckpointError: files that are missing or do not fit.
        ValueError: options that do not fit each other.
    """
    if config.device != "cpu":
        raise ValueError(f"device {config.device!r} is not supported yet; supported: cpu")
    torch.set_num_threads(config.threads or torch.get_num_threads())
    arithmetic = choose_arithmetic(config.dtype)
    if target is None:
        progress(f"loading {config.model}")
        target = load_target(config.model)
    if draft is None and proposer is None and config.draft_model not in (None, "none"):
        progress(f"loading draft model {config.draft_model}")
        draft = _load_draft(config, target)
    progress(f"preparing weights: {arithmetic.weights}")
    model = LlamaModel(target.shape, target.tensors, arithmetic, config.max_model_len)
    make = proposer
    if make is None and draft is not None:
        head = Eagle3Head(
            draft.shape, draft.tensors, draft.draft_to_target, model.embedding, arithmetic, config.max_model_len
        )
        make = lambda ledger: Eagle3Proposer(head, ledger)  # noqa: E731
    core = EngineCore(config, model, target.tokenizer, make, sink, boot_id)
    warnings = [*target.warnings, *(draft.warnings if draft is not None else ())]
    return Assembly(config, core, target, draft, arithmetic, warnings)


def _load_draft(config: EngineConfig, target: TargetCheckpoint) -> DraftCheckpoint | None:
    assert config.draft_model is not None
    try:
        return load_draft(config.draft_model, target)
    except CheckpointError:
        if config.draft_model == "auto" and config.knobs.spec != "on":
            return None  # a model without a head of its own is served plain; `which` says so
        raise

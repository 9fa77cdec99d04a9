"""From start options to a running core: load the files, build the models, choose the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import torch

from engine.config import EngineConfig
from engine.core import EngineCore
from engine.event_sink import EventSink
from engine.host_worker import HostWorker
from engine.kv.ledger import KvLedger
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint, load_draft, load_target
from engine.models.checkpoint_error import NoBuiltInDraft
from engine.models.eagle3 import Eagle3Head
from engine.models.linear import Arithmetic, choose_arithmetic
from engine.models.llama import LlamaModel
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.measured_threshold import measured_threshold
from engine.spec.proposer import Proposer

Progress = Callable[[str], None]


@dataclass
class Assembly:
    """A core and what it was made from."""

    config: EngineConfig
    core: EngineCore
    target: TargetCheckpoint
    """Without its tensors, as ``draft``: the models have packed copies of their own, and memory is short."""
    draft: DraftCheckpoint | None
    parameters: int
    """Weights of the target."""
    arithmetic: Arithmetic
    why_no_draft: str = ""
    """Why no draft model is loaded, for people; empty when one is."""
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
        ValueError: options out of range, or that do not fit each other.
    """
    config.check()
    if config.device != "cpu":
        raise ValueError(f"device {config.device!r} is not supported yet; supported: cpu")
    torch.set_num_threads(config.threads or torch.get_num_threads())
    arithmetic = choose_arithmetic(config.dtype)
    if config.measured_threshold:
        knobs = msgspec.structs.replace(config.knobs, threshold=measured_threshold(arithmetic))
        config = msgspec.structs.replace(config, knobs=knobs)
    if target is None:
        progress(f"loading {config.model}")
        target = load_target(config.model)
    warnings = list(target.warnings)
    why_no_draft = ""
    if draft is None and proposer is None:
        if config.draft_model in (None, "none"):
            why_no_draft = "started with --draft-model none"
        else:
            progress(f"loading draft model {config.draft_model}")
            try:
                draft = load_draft(config.draft_model, target)
            except NoBuiltInDraft as error:
                if config.knobs.spec == "on":
                    raise
                why_no_draft = str(error)
                warnings.append(f"every step is plain: {error}")
    progress(f"preparing weights: {arithmetic.weights}")
    model = LlamaModel(target.shape, target.tensors, arithmetic, config.max_model_len)
    make = proposer
    if make is None and draft is not None:
        head = Eagle3Head(
            draft.shape, draft.tensors, draft.draft_to_target, model.embedding, arithmetic, config.max_model_len
        )
        make = lambda ledger: Eagle3Proposer(head, ledger)  # noqa: E731
    try:
        core = EngineCore(
            config,
            model.shape,
            lambda ledger: HostWorker(model, ledger, make),
            target.tokenizer,
            sink,
            boot_id,
            overlap=config.scheduler == "overlap",
        )
    except (MemoryError, RuntimeError) as error:  # torch's allocator; a restart would only ask for as much again
        raise ValueError(
            f"no memory for a KV pool of {config.kv_tokens} tokens; start with fewer --kv-tokens "
            f"({str(error).splitlines()[0]})"
        ) from error
    parameters = sum(tensor.numel() for tensor in target.tensors.values())
    if draft is not None:
        warnings.extend(draft.warnings)
        draft = replace(draft, tensors={})
    return Assembly(config, core, replace(target, tensors={}), draft, parameters, arithmetic, why_no_draft, warnings)

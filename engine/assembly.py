"""From start options to a running core: settle what is open, load files, build models, put them together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
import torch

from engine.attention.dense import AttentionPlan
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.engine_parts import AttentionChoice, EngineParts, Progress
from engine.event_sink import EventSink
from engine.host_worker import HostWorker
from engine.kv.ledger import KvLedger
from engine.memory_plan import MemoryPlan
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint, load_draft, load_target
from engine.models.checkpoint_error import NoBuiltInDraft
from engine.models.eagle3 import Eagle3Head
from engine.models.linear import Arithmetic
from engine.models.llama import LlamaModel
from engine.models.tensor_check import parameters_of, target_tensors
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.measured_threshold import measured_threshold
from engine.spec.proposer import Proposer
from engine.start_choices import StartChoices, choose_start

MakeProposer = Callable[[KvLedger], Proposer]


@dataclass
class Assembly:
    """A core and what it was made from."""

    config: EngineConfig
    """With nothing left open: what every ``auto`` and 0 became."""
    core: EngineCore
    target: TargetCheckpoint
    """Without its tensors, as ``draft``."""
    draft: DraftCheckpoint | None
    parameters: int
    """Weights of the target."""
    arithmetic: Arithmetic
    attention: AttentionChoice
    device_name: str
    why: Mapping[str, str]
    """``worker`` and ``scheduler`` -> why it is that one."""
    memory: MemoryPlan | None = None
    """Of the GPU; None on the CPU."""
    why_no_draft: str = ""
    """Why no draft model is loaded, for people; empty when one is."""
    warnings: list[str] = field(default_factory=list)


@dataclass
class Loaded:
    """The checkpoints that the models are made from."""

    target: TargetCheckpoint
    draft: DraftCheckpoint | None
    why_no_draft: str
    warnings: list[str]

    def drop_tensors(self) -> None:
        """The models have copies of their own, and memory is short."""
        self.target = replace(self.target, tensors={})
        self.draft = None if self.draft is None else replace(self.draft, tensors={})


def assemble(
    config: EngineConfig,
    *,
    sink: EventSink | None = None,
    boot_id: str = "",
    target: TargetCheckpoint | None = None,
    draft: DraftCheckpoint | None = None,
    proposer: MakeProposer | None = None,
    progress: Progress = lambda message: None,
) -> Assembly:
    """Build an engine. ``target``, ``draft`` and ``proposer`` replace what the config would load.

    Raises:
        CheckpointError: files that are missing or do not fit.
        ValueError: options out of range, that do not fit each other, or that this machine cannot serve.
    """
    choices = choose_start(config)
    config, arithmetic = choices.config, choices.arithmetic
    if choices.on_device and proposer is not None:
        raise ValueError("a proposer in Python runs on the host worker only; leave worker at auto on the CPU")
    torch.set_num_threads(config.threads or torch.get_num_threads())
    if config.measured_threshold:
        threshold = measured_threshold(arithmetic, config.device, config.knobs.draft_tokens)
        knobs = msgspec.structs.replace(config.knobs, threshold=threshold)
        config = msgspec.structs.replace(config, knobs=knobs)
        choices = replace(choices, config=config)
    loaded = _load(config, choices, target, draft, proposer is not None, progress)
    if config.simulate_accept is not None and loaded.draft is None and proposer is None:
        raise ValueError(f"--simulate-accept needs drafts to accept, and there is no draft: {loaded.why_no_draft}")
    progress(f"preparing weights: {arithmetic.weights}")
    try:
        if choices.on_device:
            from engine.device_assembly import device_parts

            parts = device_parts(choices, loaded.target, loaded.draft, progress)
        else:
            parts = _host_parts(choices, loaded, proposer)
        loaded.drop_tensors()
        core = _core(parts, loaded.target, sink, boot_id)
        parts.prepare(core.worker)
    except torch.OutOfMemoryError as error:
        raise ValueError(
            f"the GPU's memory did not suffice; start with a lower --memory-fraction, --max-running or --prefill-chunk "
            f"({str(error).splitlines()[0]})"
        ) from error
    return Assembly(
        config=parts.config,
        core=core,
        target=loaded.target,
        draft=loaded.draft,
        parameters=parameters_of(target_tensors(loaded.target.shape)),
        arithmetic=arithmetic,
        attention=parts.attention,
        device_name=torch.cuda.get_device_name(choices.device) if choices.device.type == "cuda" else "cpu",
        why=choices.why,
        memory=parts.memory,
        why_no_draft=loaded.why_no_draft,
        warnings=loaded.warnings,
    )


def _core(parts: EngineParts, target: TargetCheckpoint, sink: EventSink | None, boot_id: str) -> EngineCore:
    config = parts.config
    try:
        return EngineCore(
            config,
            target.shape,
            parts.make_worker,
            target.tokenizer,
            sink,
            boot_id,
            overlap=config.scheduler == "overlap",
            simulated=bool(config.simulated),
        )
    except (MemoryError, RuntimeError) as error:  # torch's allocator; a restart would only ask for as much again
        if config.device == "cuda" and not isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            f"no memory for a KV pool of {config.kv_tokens} tokens; start with fewer --kv-tokens "
            f"({str(error).splitlines()[0]})"
        ) from error


def _load(
    config: EngineConfig,
    choices: StartChoices,
    target: TargetCheckpoint | None,
    draft: DraftCheckpoint | None,
    has_proposer: bool,
    progress: Progress,
) -> Loaded:
    """Load what was not given. The tensors may be taken out of what comes back."""
    dtype, device = choices.arithmetic.activations, choices.device
    if target is None:
        progress(f"loading {config.model}")
        target = load_target(config.model, dtype=dtype, device=device)
    else:
        target = replace(target, tensors=copy.copy(target.tensors))
    warnings, why_no_draft = list(target.warnings), ""
    if draft is not None:
        draft = replace(draft, tensors=copy.copy(draft.tensors))
    elif not has_proposer:
        if config.draft_model in (None, "none"):
            why_no_draft = "started with --draft-model none"
        else:
            progress(f"loading draft model {config.draft_model}")
            try:
                draft = load_draft(config.draft_model, target, dtype=dtype, device=device)
            except NoBuiltInDraft as error:
                if config.knobs.spec == "on":
                    raise
                why_no_draft = str(error)
                warnings.append(f"every step is plain: {error}")
    warnings.extend(draft.warnings if draft is not None else ())
    return Loaded(target, draft, why_no_draft, warnings)


def _host_parts(choices: StartChoices, loaded: Loaded, proposer: MakeProposer | None) -> EngineParts:
    """The CPU's own worker."""
    config, arithmetic = choices.config, choices.arithmetic
    target, draft = loaded.target, loaded.draft
    model = LlamaModel(target.shape, target.tensors, arithmetic, config.max_model_len)
    make = proposer
    if make is None and draft is not None:
        head = Eagle3Head(
            draft.shape, draft.tensors, draft.draft_to_target, model.embedding, arithmetic, config.max_model_len
        )
        make = partial(Eagle3Proposer, head)
    attention = AttentionChoice(
        "torch (dense views)", AttentionPlan, f"--attention {config.attention} on the CPU: SDPA over page runs"
    )
    simulate = config.simulate_accept
    return EngineParts(config, lambda ledger: HostWorker(model, ledger, make, simulate_accept=simulate), attention)

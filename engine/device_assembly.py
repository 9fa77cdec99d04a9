"""The device worker's parts: attention that can serve the shapes, a plan of the memory, weights on the device."""

from __future__ import annotations

import msgspec

from engine.attention.backend import AttentionBackend, choose_backend
from engine.config import Attention
from engine.device.eagle3 import DeviceHead
from engine.device.gpu_memory import GpuMemory
from engine.device.graphs import ladder
from engine.device.llama import DeviceLlama
from engine.device.programs import TreeShape, all_keys
from engine.device.worker import DeviceWorker
from engine.engine_parts import AttentionChoice, EngineParts, Progress
from engine.kv.ledger import KvLedger
from engine.memory_plan import MemoryPlan, plan_memory
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.shapes import Eagle3Shape, LlamaShape
from engine.start_choices import StartChoices
from engine.worker import Worker


def device_parts(
    choices: StartChoices, target: TargetCheckpoint, draft: DraftCheckpoint | None, progress: Progress
) -> EngineParts:
    """Build the models on the device. The checkpoints are emptied as their tensors go there.

    Raises:
        ValueError: attention that cannot serve a shape, or memory that does not suffice; it says what to change.
    """
    config, device, dtype = choices.config, choices.device, choices.arithmetic.activations
    attention, why = _backend(config.attention, choices, target.shape)
    draft_attention = None
    if draft is not None:
        # A draft's lengths are never on the host: an attention that plans there cannot serve it.
        name: Attention = "auto" if attention.needs_lengths else config.attention
        draft_attention, why_draft = _backend(name, choices, draft.shape)
        if draft_attention.name != attention.name:
            why = f"{why}; the draft's nodes by {draft_attention.name}: {why_draft}"
    memory = None
    if device.type == "cuda":
        memory = _plan(choices, attention, target.shape, draft.shape if draft is not None else None)
        progress(f"GPU memory: {memory.text}")
        config = msgspec.structs.replace(config, kv_tokens=memory.kv_tokens)
    model = DeviceLlama(target.shape, target.tensors, dtype, device, config.max_model_len)
    head = None
    if draft is not None:
        progress("preparing the draft model")
        head = DeviceHead(
            draft.shape,
            draft.tensors,
            draft.draft_to_target,
            model.embedding,
            dtype,
            device,
            config.max_model_len,
        )

    def make_worker(ledger: KvLedger) -> Worker:
        return DeviceWorker(
            model,
            head,
            ledger,
            attention,
            draft_attention,
            max_running=config.max_running,
            max_model_len=config.max_model_len,
            graphs=config.graphs,
            graph_batch_sizes=config.graph_batch_sizes,
            simulate_accept=config.simulate_accept,
        )

    def prepare(worker: Worker) -> None:
        assert isinstance(worker, DeviceWorker)
        worker.prepare(config.knobs, progress)

    return EngineParts(
        config,
        make_worker,
        AttentionChoice(attention.name, attention, f"--attention {config.attention}: {why}"),
        prepare,
        memory,
    )


def _backend(name: Attention, choices: StartChoices, shape: LlamaShape | Eagle3Shape) -> tuple[AttentionBackend, str]:
    return choose_backend(
        name,
        shape.num_heads,
        shape.num_kv_heads,
        shape.head_dim,
        choices.arithmetic.activations,
        choices.device,
    )


def _plan(
    choices: StartChoices, attention: AttentionBackend, target: LlamaShape, draft: Eagle3Shape | None
) -> MemoryPlan:
    """As many graphs are counted as are captured before the first step."""
    config = choices.config
    sizes = config.graph_batch_sizes or ladder(config.max_running)
    knobs = config.knobs
    tree = TreeShape(knobs.steps, knobs.topk, knobs.draft_tokens) if draft is not None else None
    graphs = len(all_keys(sizes, tree)) if config.graphs and attention.graphs else 0
    itemsize = choices.arithmetic.activations.itemsize
    return plan_memory(
        config,
        target,
        draft,
        itemsize,
        GpuMemory.of(choices.device),
        graphs=graphs,
        plans_attention=attention.needs_lengths,
    )

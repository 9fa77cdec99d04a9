"""What a GPU's memory will hold, planned before anything is loaded, so that nothing sized later is left out.

Weights, pools and static buffers follow exactly from the shapes. Estimates, and generous ones: CUDA's libraries, what
graphs keep, and the tensors that live within a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.device.gpu_memory import GpuMemory
from engine.device.state import RING_ROWS
from engine.models.shapes import Eagle3Shape, LlamaShape
from engine.models.tensor_check import draft_tensors, parameters_of, target_tensors

VERIFY_MARGIN = 2 * RING_ROWS
"""Slots that verifies in flight may need behind a request's last token."""
SAMPLING = 6 << 28
"""Bytes in use while sampled tokens are drawn: six times `engine.device.sampling.MOST_NUMBERS` in float64."""
LIBRARIES = 1 << 30
"""cuBLAS, compiled kernels, and their workspaces."""
EACH_GRAPH = 4 << 20
"""What a captured graph holds beside its tensors."""
ATTENTION_PLANS = 2 << 30
"""Partial results of FlashInfer's split keys, for each batch size and width."""

GIB = 1 << 30


@dataclass(frozen=True)
class MemoryPlan:
    """Who gets how much at most."""

    total: int
    fraction: float
    parts: Mapping[str, int]
    """What -> bytes."""
    kv_tokens: int
    why_kv: str

    @property
    def planned(self) -> int:
        """All parts, in bytes."""
        return sum(self.parts.values())

    @property
    def headline(self) -> str:
        return f"{_gib(self.planned)} of {_gib(self.total)} planned"

    @property
    def text(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{what} {_gib(size)}" for what, size in self.parts.items())
        return (
            f"{self.headline} (--memory-fraction {self.fraction:g}): {parts}; {self.kv_tokens} KV tokens: {self.why_kv}"
        )


def plan_memory(
    config: EngineConfig,
    target: LlamaShape,
    draft: Eagle3Shape | None,
    itemsize: int,
    gpu: GpuMemory,
    *,
    graphs: int,
    plans_attention: bool = False,
) -> MemoryPlan:
    """Plan a device's memory.

    Args:
        config: with a page size and a prefill chunk; ``kv_tokens`` 0 takes what fits and can ever be used.
        target: sizes of the model.
        draft: sizes of the head, None without one.
        itemsize: bytes of a weight, an activation, a key.
        gpu: what there is.
        graphs: how many will be captured.
        plans_attention: attention keeps buffers for each batch that it plans on the host.

    Raises:
        ValueError: the KV pool asked for, or one longest request, does not fit; it says what to change.
    """
    parts = {"taken already": gpu.taken, "libraries and kernels": LIBRARIES}
    parts["target weights"] = parameters_of(target_tensors(target)) * itemsize
    slots = {"target KV": 2 * target.num_layers * target.num_kv_heads * target.head_dim * itemsize}  # bytes a slot
    beside = {"target KV": config.page_size}  # slots that no request owns: the scrap page
    if draft is not None:
        parts["draft weights"] = parameters_of(draft_tensors(draft, own_embedding=False)) * itemsize
        parts["waiting hidden states"] = (config.max_running + 1) * RING_ROWS * _aux_width(draft) * itemsize
        slots["draft KV"] = 2 * draft.num_kv_heads * draft.head_dim * itemsize
        beside["draft KV"] = config.page_size + config.max_running * RING_ROWS
    parts["logits and inputs"] = _static_buffers(config, target, draft) * itemsize
    parts["CUDA graphs"] = graphs * EACH_GRAPH + (_verify_workspace(config, target, draft) * itemsize if graphs else 0)
    if plans_attention:
        parts["attention plans"] = ATTENTION_PLANS
    parts["step workspace"] = _step_workspace(config, target, draft, itemsize)
    room = int(gpu.total * config.memory_fraction) - sum(parts.values())
    room -= sum(slots[pool] * beside[pool] for pool in slots)
    tokens, why = _kv_tokens(config, max(0, room) // sum(slots.values()))
    pools = {pool: (tokens + beside[pool]) * slots[pool] for pool in slots}
    return MemoryPlan(gpu.total, config.memory_fraction, parts | pools, tokens, why)


def usable_kv_tokens(config: EngineConfig) -> int:
    """Slots that ``max_running`` requests of the longest kind can hold: more would never be used."""
    pages = -(-(config.max_model_len + VERIFY_MARGIN) // config.page_size)
    return config.max_running * pages * config.page_size


def _kv_tokens(config: EngineConfig, fits: int) -> tuple[int, str]:
    """The size of the pools, whole pages, and why."""
    page = config.page_size
    fits = fits // page * page
    advice = "raise --memory-fraction, or lower --max-running, --max-model-len or --prefill-chunk"
    if config.kv_tokens:
        if config.kv_tokens > fits:
            raise ValueError(
                f"--kv-tokens: {config.kv_tokens} do not fit, {fits} do beside everything else; lower it, or {advice}"
            )
        return config.kv_tokens // page * page, "as asked for"
    least = -(-config.max_model_len // page) * page
    if fits < least:
        raise ValueError(
            f"no memory for one request of --max-model-len {config.max_model_len}: {fits} KV tokens fit beside "
            f"everything else; {advice}"
        )
    usable = usable_kv_tokens(config)
    if usable <= fits:
        return usable, f"what --max-running {config.max_running} requests of --max-model-len can use; {fits} would fit"
    return fits, "what fits"


def _aux_width(draft: Eagle3Shape | None) -> int:
    """Numbers in the hidden states of a token that the head reads."""
    return 0 if draft is None else len(draft.aux_layers) * draft.target_hidden_size


def _static_buffers(config: EngineConfig, target: LlamaShape, draft: Eagle3Shape | None) -> int:
    """Logits and hidden states that graphs write, of plain and of verify steps: numbers."""
    rows = config.max_running * (1 + (config.knobs.draft_tokens if draft is not None else 0))
    return rows * (target.vocab_size + _aux_width(draft))


def _row_workspace(shape: LlamaShape) -> int:
    """Numbers that a layer makes of one row: stream, norm, attention's in- and output, MLP."""
    heads = shape.num_heads + 2 * shape.num_kv_heads
    return 3 * shape.hidden_size + heads * shape.head_dim + 3 * shape.intermediate_size


def _verify_workspace(config: EngineConfig, target: LlamaShape, draft: Eagle3Shape | None) -> int:
    """Numbers that live within the largest graph: a verify's layer, or the candidates of a draft's."""
    if draft is None:
        return config.max_running * _row_workspace(target)
    verify = config.knobs.draft_tokens * _row_workspace(target)
    grow = config.knobs.topk * 4 * draft.draft_vocab_size  # as they come, and in float32
    return config.max_running * max(verify, grow)


def _step_workspace(config: EngineConfig, target: LlamaShape, draft: Eagle3Shape | None, itemsize: int) -> int:
    """Bytes that live within a prefill or a mixed step, or while sampled tokens are drawn."""
    row = _row_workspace(target) + 2 * _aux_width(draft)
    rows = config.prefill_chunk + config.max_running  # the decodes of a mixed step run along
    logits = 2 * config.max_running * target.vocab_size  # of decodes, padded, and of prompts that end
    return max((rows * row + logits) * itemsize, SAMPLING)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= 1 << 27 else f"{size / 2**20:.0f} MiB"

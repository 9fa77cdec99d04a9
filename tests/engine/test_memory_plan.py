"""B47: the plan of a GPU's memory leaves nothing out, and says what to change where it does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.config import EngineConfig
from engine.device.gpu_memory import GpuMemory
from engine.memory_plan import ATTENTION_PLANS, GIB, MemoryPlan, plan_memory, usable_kv_tokens
from engine.models.named_shapes import SHAPES
from engine.models.tensor_check import draft_tensors, parameters_of, target_tensors
from probes.knobs import Knobs

LLAMA = SHAPES["shape:llama-3.1-8b"]
H200 = GpuMemory(total=140 * GIB, taken=GIB // 2)
CHAIN = Knobs(steps=3, topk=1, draft_tokens=4)


def plan(
    *, has_draft: bool = True, graphs: int = 100, gpu: GpuMemory = H200, plans_attention: bool = False, **options: Any
) -> MemoryPlan:
    config = EngineConfig(
        **{"model": LLAMA.name, "device": "cuda", "page_size": 64, "prefill_chunk": 8192, "knobs": CHAIN, **options}
    )
    head = LLAMA.head_shape if has_draft else None
    return plan_memory(config, LLAMA.shape, head, 2, gpu, graphs=graphs, plans_attention=plans_attention)


def test_weights_and_kv_of_target_and_draft_are_all_in_it() -> None:
    made = plan(kv_tokens=64_000)
    assert made.parts["target weights"] == 2 * parameters_of(target_tensors(LLAMA.shape))
    assert made.parts["draft weights"] == 2 * parameters_of(draft_tensors(LLAMA.head_shape, own_embedding=False))
    assert made.parts["target KV"] == (64_000 + 64) * 32 * 2 * 8 * 128 * 2
    assert made.parts["draft KV"] == (64_000 + 64 + 64 * 64) * 2 * 8 * 128 * 2
    assert made.parts["taken already"] == H200.taken
    assert all(size > 0 for size in made.parts.values())
    assert made.planned == sum(made.parts.values())


def test_the_fraction_is_filled_to_the_page_where_it_can_be_used() -> None:
    made = plan(memory_fraction=0.8, max_running=256, max_model_len=32768)
    budget, page = int(0.8 * H200.total), 64 * (32 + 1) * 2 * 8 * 128 * 2
    assert budget - page < made.planned <= budget
    assert made.kv_tokens % 64 == 0
    assert made.why_kv == "what fits"


def test_slots_that_no_request_could_hold_are_not_taken() -> None:
    made = plan(max_running=4, max_model_len=1000)
    assert made.kv_tokens == 4 * 18 * 64, "17.6 pages for 1000 tokens and a verify behind them"
    assert "--max-running 4" in made.why_kv
    assert made.planned < 0.5 * H200.total


def test_without_a_draft_nothing_is_kept_for_one() -> None:
    made, both = plan(has_draft=False), plan()
    assert not any(what.startswith(("draft", "waiting")) for what in made.parts)
    assert made.parts["logits and inputs"] < both.parts["logits and inputs"]


def test_no_graphs_no_memory_for_them() -> None:
    assert plan(graphs=0).parts["CUDA graphs"] == 0


def test_attention_that_plans_on_the_host_gets_room_for_it() -> None:
    assert plan(plans_attention=True).planned - plan().planned == ATTENTION_PLANS


def test_people_can_read_it() -> None:
    made = plan(kv_tokens=64_000)
    assert made.headline.endswith(" of 140.00 GiB planned")
    assert made.text.startswith(f"{made.headline} (--memory-fraction 0.85): taken already 0.50 GiB, ")
    assert "target weights 14.96 GiB" in made.text
    assert made.text.endswith("; 64000 KV tokens: as asked for")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kv_tokens": 10**7}, r"--kv-tokens: 10000000 do not fit, \d+ do beside everything else; lower it, or raise"),
        ({"memory_fraction": 0.1}, "no memory for one request of --max-model-len 2048: 0 KV tokens fit"),
        ({"gpu": GpuMemory(24 * GIB, GIB), "max_model_len": 131072}, "lower --max-running, --max-model-len or"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan(**options)


def test_what_torch_keeps_for_later_counts_as_free_and_what_it_uses_as_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second engine in the process must not plan over the first one's memory."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (40 * GIB, 100 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50 * GIB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 30 * GIB)
    assert GpuMemory.of(torch.device("cuda", 0)) == GpuMemory(100 * GIB, 40 * GIB)


def test_longer_contexts_can_use_more() -> None:
    config = EngineConfig(page_size=64, max_running=2, max_model_len=64)
    assert usable_kv_tokens(config) == 2 * 3 * 64

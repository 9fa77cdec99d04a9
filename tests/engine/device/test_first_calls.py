"""What is compiled before anybody is served."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine import device_assembly
from engine.attention.triton_backend import TritonBackend
from engine.device import first_calls, layer_parts
from engine.device.first_calls import call_first
from engine.device.layer_parts import Mlp
from engine.device.weights import Weights
from engine.kernels import extend_attention
from engine.kernels.attention_tiles import Tile, chunks_of_every_tile, extend_tile
from tests.engine.device.device_engines import device_engine, device_worker


@pytest.mark.parametrize("group", [1, 3, 4, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [64, 128, 256])
def test_every_tile_of_prompts_has_a_chunk(group: int, dtype: torch.dtype, dim: int) -> None:
    taken = {extend_tile(chunk * group, dim, dtype) for chunk in chunks_of_every_tile(group)}
    assert taken == {extend_tile(chunk * group, dim, dtype) for chunk in range(1, 3000)}


def test_all_tiles_are_called_and_the_pool_stays_as_it_was(interpreted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TritonBackend(torch.device("cpu"))
    monkeypatch.setattr(device_assembly, "choose_backend", lambda *shape: (backend, "the kernels, interpreted"))
    llm, _ = device_engine(dtype="float32")
    parts = device_worker(llm).parts
    tiles: list[Tile] = []

    def watched(*sizes: Any) -> Tile:
        tiles.append(extend_tile(*sizes))
        return tiles[-1]

    drawn: list[int] = []
    monkeypatch.setattr(extend_attention, "extend_tile", watched)
    monkeypatch.setattr(first_calls, "keyed_uniform", lambda seeds, positions: drawn.append(seeds.numel()))
    before = parts.pool.k.clone(), parts.pool.v.clone()
    call_first(parts)
    shape = parts.model.shape
    group = shape.num_heads // shape.num_kv_heads
    assert set(tiles) == {extend_tile(n * group, shape.head_dim, torch.float32) for n in range(1, 3000)}
    assert drawn == [1]
    assert torch.equal(parts.pool.k, before[0])
    assert torch.equal(parts.pool.v, before[1])


@pytest.mark.parametrize(("inner", "launches"), [(128, 1), (96, 0)])
def test_the_product_of_many_rows_is_called_where_a_model_can_take_it(
    interpreted: None, monkeypatch: pytest.MonkeyPatch, inner: int, launches: int
) -> None:
    tensors = {f"layer.mlp.{name}_proj.weight": torch.zeros(inner, 64) for name in ("gate", "up")}
    tensors |= {
        "layer.mlp.down_proj.weight": torch.zeros(64, inner),
        "layer.post_attention_layernorm.weight": torch.ones(64),
    }
    mlp = Mlp(Weights(tensors, torch.float16, torch.device("cpu")), "layer", 1e-5)
    called: list[bool | None] = []
    monkeypatch.setattr(layer_parts, "gated_product", lambda x, gate_up, in_one=None: called.append(in_one))
    mlp.warm_up()
    assert called == [True] * launches


def test_a_gpus_worker_calls_them_before_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, _ = device_engine()
    worker = device_worker(llm)
    called: list[object] = []
    monkeypatch.setattr("engine.device.worker.call_first", called.append)
    worker.prepare(llm.core.knobs.knobs)
    assert called == []
    monkeypatch.setattr(worker, "device", torch.device("cuda"))
    worker.prepare(llm.core.knobs.knobs)
    assert called == [worker.parts]


def test_a_first_call_that_fails_is_said_and_costs_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, _ = device_engine()
    worker = device_worker(llm)

    def broken(parts: object) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr("engine.device.worker.call_first", broken)
    monkeypatch.setattr(worker, "device", torch.device("cuda"))
    said: list[str] = []
    worker.prepare(llm.core.knobs.knobs, said.append)
    assert said[-1] == "some kernels are compiled at their first use: RuntimeError: no compiler here"

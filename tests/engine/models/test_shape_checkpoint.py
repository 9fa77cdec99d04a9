"""Named shapes: sizes as published, and weights that exist only while somebody holds them."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.models.checkpoint import load_draft, load_target
from engine.models.checkpoint_error import CheckpointError
from engine.models.fetch import FetchError, fetch
from engine.models.named_shapes import SHAPES
from engine.models.random_checkpoint import tiny_shape
from engine.models.shape_checkpoint import RandomTensors
from engine.models.tensor_check import Dims, draft_tensors, target_tensors
from engine.models.text_assets import load_text

CPU = torch.device("cpu")
SMALL = "shape:smollm2-135m"


def tensors(seed: int = 0, *, dtype: torch.dtype = torch.float32, tied: bool = False) -> RandomTensors:
    return RandomTensors(target_tensors(tiny_shape()), seed=seed, dtype=dtype, device=CPU, tied=tied)


def numbers(dims: dict[str, Dims]) -> int:
    return sum(math.prod(each) for each in dims.values())


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("shape:llama-3.1-8b", 8_030_261_248),
        ("shape:llama-3.2-3b", 3_212_749_824),
        ("shape:llama-3.2-1b", 1_235_814_400),
        (SMALL, 134_515_008),
    ],
)
def test_sizes_add_up_to_the_published_number_of_parameters(name: str, parameters: int) -> None:
    assert numbers(target_tensors(SHAPES[name].shape)) == parameters


def test_the_8b_shapes_head_is_that_of_the_paper() -> None:
    head = SHAPES["shape:llama-3.1-8b"].head_shape
    assert (head.hidden_size, head.num_heads, head.num_kv_heads, head.head_dim) == (4096, 32, 8, 128)
    assert (head.intermediate_size, head.draft_vocab_size, head.aux_layers) == (14336, 32000, (2, 16, 29))


def test_a_tensor_is_the_same_whenever_it_is_made() -> None:
    one, other = tensors(), tensors()
    kept = dict(one.items())
    for name in reversed(list(other)):
        assert torch.equal(other[name], kept[name])
    assert not torch.equal(tensors(1)["norm.weight"], kept["norm.weight"])
    assert not torch.equal(kept["layers.0.mlp.up_proj.weight"], kept["layers.1.mlp.up_proj.weight"])


def test_one_that_is_held_is_not_made_again() -> None:
    """A tied embedding is read twice: as the table, and as the output layer."""
    made = tensors()
    held = made["embed_tokens.weight"]
    assert made["embed_tokens.weight"] is held


def test_names_taken_out_of_a_copy_stay_in_the_original() -> None:
    made = tensors()
    taken = copy.copy(made)
    taken.pop("norm.weight")
    assert "norm.weight" not in taken
    assert "norm.weight" in made


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_scales_keep_a_stream_and_its_logits_in_bounds(dtype: torch.dtype) -> None:
    made, tied = tensors(dtype=dtype), tensors(dtype=dtype, tied=True)
    assert made["norm.weight"].dtype == dtype
    rows = made["lm_head.weight"].double().norm(dim=1)
    assert 2.0 < float(rows.mean()) < 3.0
    assert 2.0 < float(tied["embed_tokens.weight"].double().norm(dim=1).mean()) < 3.0
    assert 0.9 < float(made["layers.0.mlp.down_proj.weight"].double().norm(dim=1).mean()) < 1.1


def test_target_and_head_say_that_they_are_random() -> None:
    target = load_target(SMALL, dtype=torch.bfloat16, device=CPU)
    draft = load_draft("auto", target, dtype=torch.bfloat16, device=CPU)
    assert (target.name, draft.name) == (f"{SMALL} (random weights)", f"{SMALL}-eagle3 (random weights)")
    assert "a byte tokenizer stands in" in target.source
    assert set(draft.tensors) == set(draft_tensors(draft.shape, own_embedding=False))
    assert target.tensors["norm.weight"].dtype == draft.tensors["norm.weight"].dtype == torch.bfloat16
    assert draft.draft_to_target.shape == (16384,)
    assert bool((draft.draft_to_target.diff() > 0).all())
    assert int(draft.draft_to_target[-1]) < target.shape.vocab_size


def test_every_token_of_the_stand_in_shows_as_text_and_the_server_has_the_same_one() -> None:
    tokenizer = load_target(SMALL).tokenizer
    assert tokenizer.vocab_size == SHAPES[SMALL].shape.vocab_size
    assert tokenizer.decode([400, 49151]) == " #400 #49151"
    assert tokenizer.decode(tokenizer.encode("the #400")) == "the #400"
    assert load_text(SMALL).tokenizer.first_difference(tokenizer) is None


def test_the_servers_side_needs_no_torch() -> None:
    program = (
        "import sys; from engine.models.text_assets import load_text; "
        f"load_text({SMALL!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], check=False).returncode == 0


def test_a_shape_that_is_not_there_is_explained() -> None:
    with pytest.raises(CheckpointError, match=r"'shape:qwen': no such shape\. There are shape:llama-3\.1-8b, "):
        load_target("shape:qwen")


def test_there_is_nothing_to_fetch() -> None:
    with pytest.raises(FetchError, match="serve it with --weights random"):
        fetch(SMALL)

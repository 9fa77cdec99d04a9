from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.checkpoint import TargetCheckpoint, load_target
from engine.models.checkpoint_error import CheckpointError
from engine.models.random_checkpoint import random_target
from tests.engine.models.made_models import write_gguf

GOLDEN = json.loads(Path(__file__).with_name("smollm2_tokens.json").read_text(encoding="utf-8"))


@pytest.fixture
def target() -> TargetCheckpoint:
    return random_target(3, dtype=torch.float32)


def test_what_was_written_comes_back(tmp_path: Path, target: TargetCheckpoint) -> None:
    loaded = load_target(str(write_gguf(tmp_path / "tiny.gguf", target)))
    assert loaded.name == "tiny"
    assert loaded.shape == target.shape
    assert loaded.tensors.keys() == target.tensors.keys()
    for name, tensor in target.tensors.items():
        torch.testing.assert_close(loaded.tensors[name], tensor, rtol=0, atol=0)
    text = "the other <|im_end|> naïve 🌍 1234"
    assert loaded.tokenizer.encode(text) == target.tokenizer.encode(text)
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(text), skip_special=False) == text
    assert loaded.chat_template is not None
    assert loaded.chat_template.render([{"role": "user", "content": "hi"}]).endswith("assistant\n")


def test_quantized_matrices_come_back_rounded_and_in_their_place(tmp_path: Path, target: TargetCheckpoint) -> None:
    loaded = load_target(str(write_gguf(tmp_path / "tiny.gguf", target, quantized=True)))
    for name, tensor in target.tensors.items():
        # Q8_0 rounds to 1/127 of the largest of 32 values, the scale itself to half precision.
        error = (loaded.tensors[name] - tensor).abs().max()
        assert error <= tensor.abs().max() / 220, name
        assert loaded.tensors[name].is_contiguous()


def test_tied_embeddings_are_seen_from_the_missing_output(tmp_path: Path, target: TargetCheckpoint) -> None:
    loaded = load_target(str(write_gguf(tmp_path / "tiny.gguf", target, tensors={"output.weight": None})))
    assert loaded.shape.tie_embeddings
    assert "lm_head.weight" not in loaded.tensors


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"architecture": "qwen2"}, ["architecture qwen2", "expected llama"]),
        ({"tensors": {"rope_freqs.weight": torch.ones(8)}}, ["does not have: rope_freqs.weight"]),
        ({"tensors": {"blk.1.ffn_up.weight": None}}, ["missing tensors layers.1.mlp.up_proj.weight"]),
        (
            {"tensors": {"blk.0.attn_k.weight": torch.ones(32, 32)}},
            ["layers.0.self_attn.k_proj.weight", "[32, 32]", "[32, 64]"],
        ),
        ({"pre": "qwen2"}, ["tokenizer.ggml.pre is qwen2", "expected gpt-2, smollm"]),
        ({"kind": "llama"}, ["tokenizer.ggml.model is llama", "expected gpt2"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    tmp_path: Path, target: TargetCheckpoint, changes: dict[str, Any], says: list[str]
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", target, **changes)
    with pytest.raises(CheckpointError) as refusal:
        load_target(str(path))
    for words in says:
        assert words in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"GG", b"not a gguf file at all", b"GGUF\x03\0\0\0\xff\xff\0\0\0\0\0\0"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"bad\.gguf: not a GGUF file that can be read"):
        load_target(str(path))


def test_a_file_cut_short_is_refused(tmp_path: Path, target: TargetCheckpoint) -> None:
    path = write_gguf(tmp_path / "cut.gguf", target)
    whole = path.read_bytes()
    for size in (*range(100, 6000, 97), len(whole) // 100, len(whole) // 2, len(whole) - 100):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"cut\.gguf"):
            load_target(str(path))


@pytest.mark.slow
def test_the_default_model_has_the_shape_of_its_card(default_target: TargetCheckpoint) -> None:
    shape = default_target.shape
    assert (shape.num_layers, shape.hidden_size, shape.num_heads, shape.num_kv_heads) == (30, 576, 9, 3)
    assert (shape.head_dim, shape.intermediate_size, shape.vocab_size, shape.max_position) == (64, 1536, 49152, 8192)
    assert (shape.rope_theta, shape.rms_norm_eps, shape.tie_embeddings) == (100000.0, 1e-5, True)
    assert shape.eos_token_ids == default_target.tokenizer.eos_token_ids == (2,)
    assert default_target.chat_template is not None
    prompt = default_target.chat_template.render([{"role": "user", "content": "hi"}])
    assert prompt.startswith("<|im_start|>system\n")
    assert "named SmolLM" in prompt
    assert prompt.endswith("<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["texts", "spaces_before_digits"])
def test_the_default_tokenizer_gives_the_known_ids(default_target: TargetCheckpoint, part: str) -> None:
    """The first part was made with an independent tokenizer; in the second the digits rule of the GGUF's ``smollm``
    splitting keeps the spaces before a number together, where plain GPT-2 splitting would not."""
    tokenizer = default_target.tokenizer
    for row in GOLDEN[part]:
        assert tokenizer.encode(row["text"]) == row["ids"], row["text"]
        assert tokenizer.decode(row["ids"], skip_special=False) == row["text"]

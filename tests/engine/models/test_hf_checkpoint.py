from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import tokenizers
import torch

from engine.models.checkpoint import TargetCheckpoint, load_target
from engine.models.checkpoint_error import CheckpointError
from engine.models.random_checkpoint import random_target
from tests.engine.models.made_models import write_hf, write_json


@pytest.fixture(scope="module")
def target() -> TargetCheckpoint:
    return random_target(3, dtype=torch.bfloat16)


def refusal_of(directory: Path) -> str:
    with pytest.raises(CheckpointError) as refusal:
        load_target(str(directory))
    return str(refusal.value)


@pytest.mark.parametrize("shards", [1, 3])
def test_what_was_written_comes_back(tmp_path: Path, target: TargetCheckpoint, shards: int) -> None:
    loaded = load_target(str(write_hf(tmp_path / "tiny", target, shards=shards)))
    assert loaded.name == "tiny"
    assert loaded.shape == target.shape
    assert loaded.warnings == ()
    assert loaded.tensors.keys() == target.tensors.keys()
    for name, tensor in target.tensors.items():
        assert torch.equal(loaded.tensors[name], tensor), name
        assert loaded.tensors[name].dtype == torch.bfloat16
    assert loaded.tokenizer.encode("the other 🌍") == target.tokenizer.encode("the other 🌍")
    assert loaded.tokenizer.eos_token_ids == (2,)
    messages = [{"role": "user", "content": "hi"}]
    assert loaded.chat_template is not None
    assert target.chat_template is not None
    assert loaded.chat_template.render(messages) == target.chat_template.render(messages)


def test_a_tied_model_may_carry_a_copy_and_old_rotary_tables(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target, tie_word_embeddings=True)
    stored = safetensors.torch.load_file(directory / "model.safetensors")
    stored["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    safetensors.torch.save_file(stored, directory / "model.safetensors")
    loaded = load_target(str(directory))
    assert loaded.shape.tie_embeddings
    assert "lm_head.weight" not in loaded.tensors


@pytest.mark.parametrize(
    ("settings", "theta", "scaling"),
    [
        ({"rope_theta": 5e5}, 5e5, None),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, 1e4, {"rope_type": "linear", "factor": 2.0}),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7e4}}, 7e4, None),
        (
            {
                "rope_scaling": {
                    "rope_type": "llama3",
                    "factor": 8.0,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192,
                }
            },
            1e4,
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
    ],
)
def test_rope_is_read_in_both_spellings(
    tmp_path: Path, target: TargetCheckpoint, settings: dict[str, Any], theta: float, scaling: dict[str, Any] | None
) -> None:
    shape = load_target(str(write_hf(tmp_path, target, **settings))).shape
    assert (shape.rope_theta, shape.rope_scaling) == (theta, scaling)


def test_ends_of_text_come_from_generation_config_and_tokenizer(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target, eos_token_id=1)
    write_json(directory / "generation_config.json", {"eos_token_id": [0, 1]})
    loaded = load_target(str(directory))
    assert loaded.shape.eos_token_ids == loaded.tokenizer.eos_token_ids == (0, 1, 2)


def test_no_end_of_text_is_warned_about(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target, eos_token_id=None)
    write_json(directory / "tokenizer_config.json", {})
    loaded = load_target(str(directory))
    assert loaded.chat_template is None
    assert "no end-of-text token" in loaded.warnings[0]


def test_a_template_file_wins_over_the_tokenizer_config(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target)
    (directory / "chat_template.jinja").write_text("{{ eos_token }}{{ messages[0].content }}", encoding="utf-8")
    template = load_target(str(directory)).chat_template
    assert template is not None
    assert template.render([{"role": "user", "content": "hi"}]) == "<|im_end|>hi"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"architectures": ["Qwen2ForCausalLM"]}, ["Qwen2ForCausalLM", "expected LlamaForCausalLM"]),
        ({"architectures": None, "model_type": "mixtral"}, ["architecture mixtral"]),
        ({"hidden_act": "gelu"}, ["sets hidden_act to 'gelu', expected 'silu'"]),
        ({"attention_bias": True}, ["sets attention_bias to True"]),
        ({"quantization_config": {"bits": 4}}, ["sets quantization_config"]),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, ["rope type 'yarn'", "linear or llama3"]),
        ({"rope_scaling": {"rope_type": "linear"}}, ["rope type linear needs numbers for factor"]),
        ({"hidden_size": "64"}, ["hidden_size is '64', expected a positive whole number"]),
        ({"num_key_value_heads": 3}, ["num_attention_heads is 4, expected a multiple of num_key_value_heads 3"]),
        ({"intermediate_size": 96}, ["layers.0.mlp.gate_proj.weight", "[128, 64]", "[96, 64]"]),
        ({"num_hidden_layers": 3}, ["does not have: layers.3."]),
        ({"num_hidden_layers": 5}, ["missing tensors layers.4."]),
        ({"vocab_size": 300}, ["embed_tokens.weight", "[320, 64]", "[300, 64]"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    tmp_path: Path, target: TargetCheckpoint, settings: dict[str, Any], says: list[str]
) -> None:
    message = refusal_of(write_hf(tmp_path, target, **settings))
    for words in says:
        assert words in message


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, target: TargetCheckpoint, name: str) -> None:
    directory = write_hf(tmp_path, target)
    (directory / name).write_bytes(b"damaged")
    assert name in refusal_of(directory)
    (directory / name).unlink()
    assert name in refusal_of(directory)


def test_pickled_weights_are_pointed_out(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target)
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    assert "Found pytorch_model.bin: convert it to safetensors" in refusal_of(directory)


def test_a_shard_that_is_not_there_is_named(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target, shards=3)
    (directory / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors missing although the index lists them" in refusal_of(directory)


def test_quantized_weights_are_refused_by_type(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target)
    stored = safetensors.torch.load_file(directory / "model.safetensors")
    stored["model.norm.weight"] = torch.ones(64, dtype=torch.int8)
    safetensors.torch.save_file(stored, directory / "model.safetensors")
    assert "tensor norm.weight is of type torch.int8" in refusal_of(directory)


def test_a_tokenizer_that_cannot_be_decoded_exactly_is_refused(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target)
    content = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    content["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    write_json(directory / "tokenizer.json", content)
    assert "its decoder is WordPiece, expected ByteLevel" in refusal_of(directory)


def test_more_tokens_than_rows_are_refused(tmp_path: Path, target: TargetCheckpoint) -> None:
    directory = write_hf(tmp_path, target)
    backend = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    backend.add_tokens(["<one more>"])
    backend.save(str(directory / "tokenizer.json"))
    assert "tokenizer.json has 321 tokens, embed_tokens.weight 320 rows" in refusal_of(directory)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CheckpointError, match=r"neither a built-in name nor a directory.*smollm2-135m"):
        load_target("no-such-model")

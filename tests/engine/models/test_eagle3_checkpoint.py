from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.byte_tokenizer import byte_tokenizer
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint, load_draft
from engine.models.checkpoint_error import CheckpointError
from engine.models.random_checkpoint import random_draft, random_target, tiny_shape
from tests.engine.models.made_models import write_head, write_json


@pytest.fixture(scope="module")
def target() -> TargetCheckpoint:
    return random_target(3, dtype=torch.float32)


@pytest.fixture(scope="module")
def draft(target: TargetCheckpoint) -> DraftCheckpoint:
    return random_draft(4, target)


def refusal_of(directory: Path, target: TargetCheckpoint) -> str:
    with pytest.raises(CheckpointError) as refusal:
        load_draft(str(directory), target)
    return str(refusal.value)


@pytest.mark.parametrize("layer", ["midlayer.", "midlayer.0.", "layers.0.", "model.layers.0.", "model.midlayer."])
def test_every_naming_gives_the_same_head(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint, layer: str
) -> None:
    loaded = load_draft(str(write_head(tmp_path, draft, layer=layer)), target)
    assert loaded.shape == draft.shape
    assert loaded.warnings == ()
    assert loaded.tensors.keys() == draft.tensors.keys()
    for name, tensor in draft.tensors.items():
        assert torch.equal(loaded.tensors[name], tensor), name
    assert torch.equal(loaded.draft_to_target, draft.draft_to_target)
    assert loaded.draft_to_target.dtype == torch.int64


def test_a_whole_vocabulary_needs_no_map(tmp_path: Path, target: TargetCheckpoint) -> None:
    whole = random_draft(4, target, draft_vocab_size=320)
    embedding = {"embed_tokens.weight": torch.ones(320, 64), "d2t": None, "t2d": None}
    loaded = load_draft(str(write_head(tmp_path, whole, tensors=embedding)), target)
    assert loaded.draft_to_target.tolist() == list(range(320))
    assert "embed_tokens.weight" in loaded.tensors


def test_a_map_under_its_other_name_and_without_t2d(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint
) -> None:
    offsets = draft.draft_to_target - torch.arange(160)
    renamed = {"d2t": None, "t2d": None, "draft_id_to_target_id": offsets.to(torch.int32)}
    loaded = load_draft(str(write_head(tmp_path, draft, tensors=renamed)), target)
    assert torch.equal(loaded.draft_to_target, draft.draft_to_target)


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("missing", ["missing tensor d2t", "160 rows", "320 tokens"]),
        ("absolute", ["d2t holds absolute target ids", "the ids that t2d marks", "expected offsets"]),
        ("absolute without t2d", ["d2t holds absolute target ids", "they rise at every step"]),
        ("identity as absolute", ["d2t holds absolute target ids", "expected offsets"]),
        ("out of range", ["d2t", "draft id 159 becomes target id 320", "expected 0 to 319"]),
        ("negative", ["d2t", "draft id 0 becomes target id -1"]),
        ("not rising", ["d2t: target ids do not rise at draft id 5"]),
        ("too short", ["d2t: found shape [159], expected [160]"]),
        ("floats", ["d2t is of type torch.float32"]),
        ("other t2d", ["d2t and t2d contradict each other"]),
        ("t2d marks another count", ["t2d marks 161 target ids, expected 160"]),
    ],
)
def test_b22_a_wrong_map_is_refused_and_named(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint, case: str, says: list[str]
) -> None:
    """B22: a missing, absolute, identity or out-of-range map fails at load, naming the tensor."""
    absolute = draft.draft_to_target
    offsets = absolute - torch.arange(160)
    t2d = torch.zeros(320, dtype=torch.bool)
    t2d[absolute] = True
    last_outside, not_rising, first_negative = offsets.clone(), offsets.clone(), offsets.clone()
    last_outside[-1] = 320 - 159
    not_rising[5] = not_rising[4] - 1
    first_negative[0] = -1
    one_more = t2d.clone()
    one_more[int((~t2d).nonzero()[0])] = True
    moved = one_more.clone()
    moved[int(absolute[-1])] = False
    cases: dict[str, dict[str, torch.Tensor | None]] = {
        "missing": {"d2t": None, "t2d": None},
        "absolute": {"d2t": absolute},
        "absolute without t2d": {"d2t": absolute, "t2d": None},
        "identity as absolute": {"d2t": torch.arange(160), "t2d": None},
        "out of range": {"d2t": last_outside, "t2d": None},
        "negative": {"d2t": first_negative, "t2d": None},
        "not rising": {"d2t": not_rising, "t2d": None},
        "too short": {"d2t": offsets[:-1]},
        "floats": {"d2t": offsets.float()},
        "other t2d": {"t2d": moved},
        "t2d marks another count": {"t2d": one_more},
    }
    message = refusal_of(write_head(tmp_path, draft, tensors=cases[case]), target)
    for words in says:
        assert words in message


@pytest.mark.parametrize("where", ["config", "t2d"])
def test_b23_another_vocabulary_is_refused_with_both_sizes(
    tmp_path: Path, target: TargetCheckpoint, where: str
) -> None:
    """B23: the message shows the head's vocabulary and the target's."""
    other = random_target(3, tiny_shape(vocab_size=384), torch.float32)
    settings: dict[str, Any] = {} if where == "config" else {"vocab_size": None}
    message = refusal_of(write_head(tmp_path, random_draft(4, other), **settings), target)
    assert "made for a vocabulary of 384" in message
    assert "the target random has 320" in message


def test_b23_one_token_that_differs_is_refused_with_both_tokens(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint
) -> None:
    """B23: same size, one differing token."""
    head = write_head(tmp_path, draft)
    tokenizer = json.loads(byte_tokenizer(320)._backend.to_str())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["th"], vocabulary["he"] = vocabulary["he"], vocabulary["th"]
    write_json(head / "tokenizer.json", tokenizer)
    message = refusal_of(head, target)
    assert "token 259 is 'he' in the head, 'th' in the target" in message


def test_the_targets_own_tokenizer_is_fine(tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint) -> None:
    head = write_head(tmp_path, draft)
    target.tokenizer._backend.save(str(head / "tokenizer.json"))
    assert load_draft(str(head), target).name == tmp_path.name


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"fc.weight": torch.ones(64, 130)}, ["fc.weight", "[64, 130]", "[64, n x 64]"]),
        ({"midlayer.hidden_norm.weight": None}, ["missing tensors layers.0.hidden_norm.weight"]),
        ({"lm_head.weight": None}, ["missing tensor lm_head.weight"]),
        ({"fc_norm.0.weight": torch.ones(64)}, ["does not have: fc_norm.0.weight"]),
        ({"midlayer.self_attn.q_proj.bias": torch.ones(64)}, ["does not have: layers.0.self_attn.q_proj.bias"]),
        ({"midlayer.mlp.down_proj.weight": torch.ones(64, 96)}, ["mlp.down_proj.weight", "[64, 96]", "[64, 128]"]),
        ({"midlayer.self_attn.v_proj.weight": torch.ones(32, 64)}, ["v_proj.weight", "[32, 64]", "[32, 128]"]),
        ({"midlayer.self_attn.k_proj.weight": torch.ones(16, 128)}, ["2 for keys and values", "k_proj [16, 128]"]),
        ({"midlayer.1.mlp.up_proj.weight": torch.ones(8, 8)}, ["a head of 2 layers", "layers.1.*", "expected one"]),
    ],
)
def test_a_tensor_that_does_not_fit_is_named_with_both_shapes(
    tmp_path: Path,
    target: TargetCheckpoint,
    draft: DraftCheckpoint,
    tensors: dict[str, torch.Tensor | None],
    says: list[str],
) -> None:
    message = refusal_of(write_head(tmp_path, draft, tensors=tensors), target)
    for words in says:
        assert words in message


@pytest.mark.parametrize(
    ("flag", "value"),
    [("norm_before_fc", True), ("fc_norm", True), ("norm_output", True), ("use_aux_hidden_state", False)],
)
@pytest.mark.parametrize("nested", [False, True])
def test_variants_are_refused_by_name(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint, flag: str, value: bool, nested: bool
) -> None:
    settings: dict[str, Any] = {"eagle_config": {flag: value}} if nested else {flag: value}
    message = refusal_of(write_head(tmp_path, draft, **settings), target)
    assert f"sets {flag} to {value}, expected {not value}" in message


def test_norm_before_residual_is_read_and_missing_means_no(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint
) -> None:
    assert not load_draft(str(write_head(tmp_path / "a", draft)), target).shape.norm_before_residual
    head = write_head(tmp_path / "b", draft, norm_before_residual=True)
    assert load_draft(str(head), target).shape.norm_before_residual


def test_b25_an_unknown_flag_is_warned_about(tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint) -> None:
    """B25: what nobody reads may change the network."""
    head = write_head(tmp_path, draft, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "spin_norm": True})
    assert load_draft(str(head), target).warnings == (
        "draft head: config.json sets eagle_config.spin_norm, unknown here and ignored",
    )


def test_a_wrong_layer_count_in_the_config_only_warns(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint
) -> None:
    loaded = load_draft(str(write_head(tmp_path, draft, num_hidden_layers=32)), target)
    assert loaded.warnings == (
        "draft head: config.json says num_hidden_layers 32, the tensors 1; the tensors are right",
    )


@pytest.mark.parametrize(
    ("settings", "boundaries"),
    [
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 3]}}, (1, 2, 4)),
        ({"eagle_config": None, "eagle_aux_hidden_state_layer_ids": [0, 1, 3]}, (1, 2, 4)),
        ({"eagle_config": None, "aux_hidden_state_layer_ids": [0, 1, 4]}, (0, 1, 4)),
        (
            {"eagle_config": None, "eagle_aux_hidden_state_layer_ids": [0, 1, 4], "speculators_config": {}},
            (0, 1, 4),
        ),
        ({"eagle_config": None}, (2, 2, 1)),
    ],
)
def test_layer_ids_mean_outputs_or_boundaries_by_who_wrote_them(
    tmp_path: Path,
    target: TargetCheckpoint,
    draft: DraftCheckpoint,
    settings: dict[str, Any],
    boundaries: tuple[int, ...],
) -> None:
    loaded = load_draft(str(write_head(tmp_path, draft, **settings)), target)
    assert loaded.shape.aux_layers == boundaries


def test_layer_ids_must_fit_target_and_fc(tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint) -> None:
    """B25: a layer that the target does not have, and a count that fc does not read."""
    outside = write_head(tmp_path / "a", draft, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 4]})
    assert "[0, 1, 4], expected layers of a target that has 4" in refusal_of(outside, target)
    two = write_head(tmp_path / "b", draft, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1]})
    assert "fc.weight reads 3 hidden states, but eagle_aux_hidden_state_layer_ids are [0, 1]" in refusal_of(two, target)


def test_a_speculators_config_keeps_its_sizes_one_level_down(
    tmp_path: Path, target: TargetCheckpoint, draft: DraftCheckpoint
) -> None:
    layer = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rope_parameters": {"rope_theta": 5e5}}
    flat = dict.fromkeys(["num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta", "eagle_config"])
    head = write_head(tmp_path, draft, layer="layers.0.", transformer_layer_config=layer, **flat)
    loaded = load_draft(str(head), target)
    assert (loaded.shape.num_heads, loaded.shape.num_kv_heads, loaded.shape.head_dim) == (4, 2, 16)
    assert loaded.shape.rope_theta == 5e5


def test_an_unknown_name_lists_the_known_ones(target: TargetCheckpoint) -> None:
    with pytest.raises(CheckpointError, match=r"neither a built-in name nor a directory.*smollm2-135m-eagle3"):
        load_draft("no-such-head", target)
    with pytest.raises(CheckpointError, match=r"none is built in for random.*--draft-model none"):
        load_draft("auto", target)


@pytest.mark.slow
def test_the_head_that_ships_fits_the_default_model(default_target: TargetCheckpoint) -> None:
    head = load_draft("auto", default_target)
    assert head.name == "smollm2-135m-eagle3"
    assert head.shape.aux_layers == (2, 15, 27)
    assert head.shape.draft_vocab_size == head.draft_to_target.numel() == 16384
    assert head.warnings == ()


def test_b23_the_head_that_ships_is_refused_for_another_target(target: TargetCheckpoint) -> None:
    """B23, B94: the built-in head with a target it was not made for."""
    with pytest.raises(CheckpointError, match=r"made for a vocabulary of 49152 .* the target random has 320"):
        load_draft("smollm2-135m-eagle3", target)

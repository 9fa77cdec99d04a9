from __future__ import annotations

import torch

from engine.models.byte_tokenizer import byte_tokenizer
from engine.models.checkpoint import load_draft, load_target
from engine.models.random_checkpoint import random_draft, random_target, tiny_shape
from engine.models.tensor_check import draft_tensors, target_tensors


def test_a_seed_names_the_weights_whatever_the_dtype() -> None:
    one, same, other = random_target(1), random_target(1, dtype=torch.float32), random_target(2)
    for name, tensor in one.tensors.items():
        assert tensor.dtype == torch.float64
        assert torch.equal(tensor.float(), same.tensors[name])
        assert not torch.equal(tensor, other.tensors[name])


def test_the_tensors_are_those_of_the_shape() -> None:
    target = random_target(1, tiny_shape(vocab_size=40, num_layers=2))
    assert {name: tuple(tensor.shape) for name, tensor in target.tensors.items()} == target_tensors(target.shape)
    draft = random_draft(2, target)
    found = {name: tuple(tensor.shape) for name, tensor in draft.tensors.items()}
    assert found == draft_tensors(draft.shape, own_embedding=False)
    assert draft.shape.draft_vocab_size == 20
    assert bool((draft.draft_to_target.diff() > 0).all())
    assert all(0 <= boundary <= 2 for boundary in draft.shape.aux_layers)


def test_logits_are_neither_flat_nor_settled() -> None:
    """lm_head over a normed state: the likeliest of 320 tokens has a noticeable but no overwhelming share."""
    target = random_target(1)
    state = torch.randn(200, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    shares = (state @ target.tensors["lm_head.weight"].T).softmax(-1).max(-1).values
    assert 0.1 < float(shares.median()) < 0.6


def test_the_built_in_pair_says_that_it_is_random() -> None:
    target = load_target("tiny-random")
    assert target.name == "tiny-random (random weights)"
    assert target.shape.eos_token_ids == (2,)
    draft = load_draft("auto", target)
    assert draft.name == "tiny-random-eagle3"
    assert draft.shape.target_hidden_size == target.shape.hidden_size


def test_a_tiny_vocabulary_still_has_letters() -> None:
    tokenizer = byte_tokenizer(40)
    assert tokenizer.vocab_size == 40
    assert tokenizer.decode(tokenizer.encode("AB C")) == "AB C"

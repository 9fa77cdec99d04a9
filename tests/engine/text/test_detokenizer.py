from __future__ import annotations

import random

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from engine.models.byte_tokenizer import byte_tokenizer
from engine.models.checkpoint import TargetCheckpoint
from engine.text.detokenizer import IncrementalDetokenizer
from engine.text.tokenizer import Tokenizer

FAMILY = "👩‍👩‍👧‍👦"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_tokenizer(320)


def sentencepiece_like() -> Tokenizer:
    """As Llama 2's: a mark for spaces, one in front of the text, bytes for what has no token."""
    tokens = ["<unk>", "\u2581a", "b", "\u2581", "a", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[("\u2581", "a")], byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return Tokenizer(backend)


def test_a_character_over_several_tokens_comes_whole(tokenizer: Tokenizer) -> None:
    detokenizer = IncrementalDetokenizer(tokenizer)
    pieces = [detokenizer.push([token]) for token in tokenizer.encode(f"a{FAMILY}b")]
    assert pieces[0] == "a"
    assert [piece for piece in pieces if piece] == ["a", *FAMILY, "b"]
    assert len(pieces) > 20  # the family alone is 25 bytes
    assert detokenizer.flush() == ""


def test_a_character_that_never_ends_becomes_one_replacement(tokenizer: Tokenizer) -> None:
    detokenizer = IncrementalDetokenizer(tokenizer)
    assert detokenizer.push(tokenizer.encode("x🌍")[:-1]) == "x"
    assert detokenizer.flush() == "\ufffd"


def test_special_tokens_are_left_out_unless_asked_for(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a<|im_end|>b")
    assert IncrementalDetokenizer(tokenizer).push(ids) == "ab"
    assert IncrementalDetokenizer(tokenizer, skip_special=False).push(ids) == "a<|im_end|>b"


@pytest.mark.parametrize("make", [lambda: byte_tokenizer(320), sentencepiece_like], ids=["byte-level", "fallback"])
def test_pieces_add_up_to_the_whole_whatever_the_tokens(make: object) -> None:
    """Random ids, so most of it is broken UTF-8."""
    assert callable(make)
    tokenizer: Tokenizer = make()
    rng = random.Random(7)
    for _ in range(500):
        ids = [rng.randrange(tokenizer.vocab_size) for _ in range(rng.randrange(30))]
        detokenizer, text, rest = IncrementalDetokenizer(tokenizer), "", ids
        while rest:
            count = rng.randrange(0, 4)
            text += detokenizer.push(rest[:count])
            rest = rest[count:]
        assert text + detokenizer.flush() == tokenizer.decode(ids)


def test_only_the_first_word_of_a_text_loses_its_space() -> None:
    tokenizer = sentencepiece_like()
    ids = tokenizer.encode("a a")
    assert tokenizer.decode(ids) == "a a"
    assert IncrementalDetokenizer(tokenizer).push(ids) == "a a"
    assert IncrementalDetokenizer(tokenizer, prompt_ids=[2]).push(ids) == " a a"


@pytest.mark.slow
def test_the_default_vocabulary_decodes_as_the_library_does(default_target: TargetCheckpoint) -> None:
    tokenizer = default_target.tokenizer
    rng = random.Random(9)
    for _ in range(300):
        ids = [rng.randrange(tokenizer.vocab_size) for _ in range(20)]
        for skip in (True, False):
            assert tokenizer.decode(ids, skip) == tokenizer._backend.decode(ids, skip_special_tokens=skip)

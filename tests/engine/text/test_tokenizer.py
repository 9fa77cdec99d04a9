from __future__ import annotations

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, processors

from engine.models.byte_tokenizer import byte_tokenizer
from engine.text.tokenizer import Tokenizer, TokenizerError, byte_level_alphabet


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_tokenizer(320)


@pytest.mark.parametrize("text", ["", " ", "the other hat", "naïve café", "日本語 🌍", "\x00\x7f\t\r\n", "a\u0301"])
def test_any_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()


def test_half_a_surrogate_pair_is_refused(tokenizer: Tokenizer) -> None:
    """JSON can carry one, and the library's own error would not say what is wrong."""
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        tokenizer.encode("a\ud83c")


def test_merges_are_used(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("the")] == [b"th", b"e"]


def test_special_text_is_one_token_or_spelled_out(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("<|im_end|>") == [2]
    spelled = tokenizer.encode("<|im_end|>", allow_special=False)
    assert len(spelled) > 1
    assert tokenizer.decode(spelled) == "<|im_end|>"
    assert tokenizer.encode("<|im_end|>") == [2]  # the other pipeline was left alone
    assert tokenizer.decode([2]) == ""
    assert tokenizer.decode([2], skip_special=False) == "<|im_end|>"


def test_what_goes_in_front_is_added_on_request_only() -> None:
    backend = byte_tokenizer(320)._backend
    backend.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer = Tokenizer(backend)
    assert tokenizer.encode("a", add_bos=True) == [0, *tokenizer.encode("a")]


def test_ids_outside_the_vocabulary(tokenizer: Tokenizer) -> None:
    """Models pad their vocabulary: such an id has no text. A negative one is a mistake."""
    assert tokenizer.vocab_size == 320
    assert tokenizer.token_bytes(320) == b""
    with pytest.raises(ValueError, match=r"token id: got -1, expected 0 to 319"):
        tokenizer.token_bytes(-1)


def test_hand_added_tokens_stand_for_themselves() -> None:
    """They are not written in the byte alphabet: this one would otherwise turn into another byte."""
    backend = byte_tokenizer(320)._backend
    backend.add_tokens([AddedToken("Ġé", special=False)])
    tokenizer = Tokenizer(backend, [2, 2, 0])
    assert tokenizer.decode(tokenizer.encode("xĠéx")) == "xĠéx"
    assert tokenizer.eos_token_ids == (2, 0)


def test_the_first_difference_of_two_vocabularies(tokenizer: Tokenizer) -> None:
    assert tokenizer.first_difference(byte_tokenizer(320)) is None
    assert tokenizer.first_difference(byte_tokenizer(319)) == (319, "pr", None)


def test_the_byte_alphabet_is_a_bijection() -> None:
    alphabet = byte_level_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert (alphabet["Ġ"], alphabet["Ċ"], alphabet["a"], alphabet["é"]) == (32, 10, 97, 233)


def test_a_decoder_that_loses_bytes_is_refused() -> None:
    backend = tokenizers.Tokenizer(models.WordPiece(vocab={"a": 0}, unk_token="a"))
    backend.decoder = decoders.WordPiece()
    with pytest.raises(TokenizerError, match="its decoder is WordPiece, expected ByteLevel"):
        Tokenizer(backend)
    with pytest.raises(TokenizerError, match="its decoder is none"):
        Tokenizer(tokenizers.Tokenizer(models.BPE()))

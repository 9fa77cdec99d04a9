"""Outputs to text, ids and log probabilities, with a tokenizer that splits characters into bytes."""

from __future__ import annotations

import json
import math

from engine.ipc import Output, TokenLogprobs
from engine.models.text_assets import load_text
from engine.server.choice_text import ChoiceText, Piece
from engine.server.logprobs import LOWEST, chat_logprobs, completion_logprobs, token_label
from engine.server.responses import encode_json

TOKENIZER = load_text("tiny-random").tokenizer
EOS = TOKENIZER.eos_token_ids[0]
TEXT = "Grüße, 世界 🙂!"


def outputs(text: str, *, size: int = 1, scores: bool = False) -> list[Output]:
    ids = TOKENIZER.encode(text)
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]
    return [
        Output(
            request_id="r",
            token_ids=part,
            logprobs=[TokenLogprobs(chosen=-1.0, top_ids=[token], top=[-1.0]) for token in part] if scores else None,
            finish_reason="length" if number == len(parts) - 1 else None,
        )
        for number, part in enumerate(parts)
    ]


def test_no_piece_ends_inside_a_character() -> None:
    for size in (1, 2, 3):
        choice = ChoiceText(TOKENIZER, [1])
        pieces = [choice.push(output).text for output in outputs(TEXT, size=size)]
        assert "".join(pieces) == TEXT
        assert "\ufffd" not in "".join(pieces)


def test_a_character_that_is_never_finished_shows_at_the_end() -> None:
    ids = TOKENIZER.encode("a🙂")[:-1]
    choice = ChoiceText(TOKENIZER, [1])
    assert choice.push(Output(request_id="r", token_ids=ids)).text == "a"
    assert choice.push(Output(request_id="r", finish_reason="length")).text == "\ufffd"


def test_a_stop_token_ends_the_text_and_is_no_part_of_it() -> None:
    ids = TOKENIZER.encode("ab!")
    piece = ChoiceText(TOKENIZER, [1], (ids[-1],)).push(
        Output(request_id="r", token_ids=ids, finish_reason="stop", stop_reason=ids[-1])
    )
    assert (piece.text, piece.token_ids, piece.stop_reason) == ("ab", ids, ids[-1])


def test_end_of_text_is_no_stop_reason_unless_asked_for() -> None:
    end = Output(request_id="r", token_ids=[EOS], finish_reason="stop", stop_reason=EOS)
    assert ChoiceText(TOKENIZER, [1]).push(end).stop_reason is None
    assert ChoiceText(TOKENIZER, [1], (EOS,)).push(end).stop_reason == EOS


def test_text_of_the_engine_is_taken_as_it_is() -> None:
    """B70: what the engine held back and then released arrives, whatever the ids say."""
    choice = ChoiceText(TOKENIZER, [1])
    ids = TOKENIZER.encode("xyas")
    assert choice.push(Output(request_id="r", token_ids=ids, text="xy")).text == "xy"
    assert choice.push(Output(request_id="r", text="as", finish_reason="length")).text == "as"


def test_offsets_and_labels() -> None:
    """B85: bytes that are no character become valid JSON, and two of them never share a label."""
    choice = ChoiceText(TOKENIZER, [1])
    whole = Piece()
    for output in outputs(TEXT, scores=True):
        whole.add(choice.push(output))
    shape = completion_logprobs(TOKENIZER, whole.scored)
    assert len(shape["tokens"]) == len(whole.token_ids) == len(shape["text_offset"])
    for label, offset in zip(shape["tokens"], shape["text_offset"], strict=True):
        if not label.startswith("bytes:"):
            assert TEXT[offset : offset + len(label)] == label
    assert any(label.startswith("bytes:") for label in shape["tokens"])
    labels = {token_label(TOKENIZER, token) for token in range(TOKENIZER.vocab_size)}
    assert len(labels) == TOKENIZER.vocab_size
    content = chat_logprobs(TOKENIZER, whole.scored)["content"]
    assert bytes(byte for entry in content for byte in entry["bytes"]).decode() == TEXT
    json.loads(encode_json(shape))


def test_minus_infinity_and_the_chosen_token() -> None:
    scores = TokenLogprobs(chosen=-math.inf, top_ids=[5, 6], top=[-0.1, -math.inf])
    piece = ChoiceText(TOKENIZER, [1]).push(Output(request_id="r", token_ids=[7], logprobs=[scores]))
    shape = json.loads(encode_json(completion_logprobs(TOKENIZER, piece.scored)))
    assert shape["token_logprobs"] == [LOWEST]
    assert len(shape["top_logprobs"][0]) == 3
    entry = json.loads(encode_json(chat_logprobs(TOKENIZER, piece.scored)))["content"][0]
    assert [other["logprob"] for other in entry["top_logprobs"]] == [-0.1, LOWEST]

"""From the engine's outputs of one sequence to what its reader sees: text, token ids and log probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.ipc import FinishReason, Output, TokenLogprobs
from engine.text.detokenizer import IncrementalDetokenizer
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ScoredToken:
    """One emitted token with its log probabilities."""

    token_id: int
    text_offset: int
    """Characters of the answer before this token."""
    scores: TokenLogprobs


@dataclass(kw_only=True)
class Piece:
    """What one output (or, added up, a whole answer) brings."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    scored: list[ScoredToken] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None

    def add(self, later: Piece) -> None:
        """Append what came after."""
        self.text += later.text
        self.token_ids += later.token_ids
        self.scored += later.scored
        self.finish_reason = later.finish_reason
        self.stop_reason = later.stop_reason


class ChoiceText:
    """Detokenizes one sequence as it comes; characters are never split between pieces."""

    def __init__(self, tokenizer: Tokenizer, prompt_ids: list[int], stop_token_ids: tuple[int, ...] = ()) -> None:
        self._tokenizer = tokenizer
        self._natural_ends = frozenset(tokenizer.eos_token_ids) - frozenset(stop_token_ids)
        self._detokenizer = IncrementalDetokenizer(tokenizer, prompt_ids)
        self._chars = 0  # characters begun by the tokens so far

    def push(self, output: Output) -> Piece:
        """The next piece. Text that the engine made (requests with stop strings) is taken as it is."""
        return Piece(
            text=output.text if output.text is not None else self._decode(output),
            token_ids=output.token_ids,
            scored=self._score(output),
            finish_reason=output.finish_reason,
            # An end of text that nobody asked for by id is no reason worth naming; null is what clients expect.
            stop_reason=None if output.stop_reason in self._natural_ends else output.stop_reason,
        )

    def _decode(self, output: Output) -> str:
        ids = output.token_ids
        if isinstance(output.stop_reason, int) and ids and ids[-1] == output.stop_reason:
            ids = ids[:-1]  # a stop token ends the text, it is no part of it
        text = self._detokenizer.push(ids)
        return text if output.finish_reason is None else text + self._detokenizer.flush()

    def _score(self, output: Output) -> list[ScoredToken]:
        scored = []
        for token_id, scores in zip(output.token_ids, output.logprobs or [], strict=False):
            data = b"" if token_id in self._tokenizer.special_token_ids else self._tokenizer.token_bytes(token_id)
            # A token that starts inside a character stands at that character.
            inside = bool(data) and data[0] & 0xC0 == 0x80
            scored.append(ScoredToken(token_id=token_id, text_offset=max(0, self._chars - inside), scores=scores))
            self._chars += sum(byte & 0xC0 != 0x80 for byte in data)
        return scored

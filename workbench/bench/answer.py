"""One request as its client sees it: when which tokens came, and what the server says it counted.

With speculation a chunk holds several tokens, so chunks are never counted as tokens: a chunk's tokens come from its
``token_ids``, else from usage so far, else they are shared out by what the whole answer had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from workbench.bench.request_error import RequestError


class Delta(msgspec.Struct):
    """Text of a streamed chat chunk, or of a whole chat answer."""

    content: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct):
    """One sequence's part of a chunk or an answer, in either dialect."""

    index: int = 0
    text: str | None = None
    delta: Delta | None = None
    message: Delta | None = None
    token_ids: list[int] | None = None
    finish_reason: str | None = None

    @property
    def words(self) -> str:
        if self.text is not None:
            return self.text
        said = self.delta or self.message or Delta()
        return (said.reasoning_content or "") + (said.content or "")


class Usage(msgspec.Struct):
    """Tokens, as the server counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    specwb: dict[str, Any] | None = None
    """Our own engine's extension: ``verify_steps``, ``correct_drafts``, ``accept_length``."""


class Chunk(msgspec.Struct):
    """A streamed chunk, or a whole answer."""

    id: str = ""
    choices: list[Choice] = []
    usage: Usage | None = None
    error: Any = None


decode_chunk = msgspec.json.Decoder(Chunk).decode


@dataclass
class Sequence:
    """One choice of an answer."""

    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    finish_reason: str | None = None


@dataclass
class Answer:
    """A request from its sending to its end. Times are monotonic seconds."""

    sent_at: float
    ended_at: float = 0.0
    id: str = ""
    sequences: dict[int, Sequence] = field(default_factory=dict)
    chunks: list[tuple[float, int | None]] = field(default_factory=list)
    """(time, tokens) of each chunk that brought some; None where the server does not say how many."""
    usage: Usage | None = None
    error: RequestError | None = None
    left: bool = False
    """This client hung up by itself before the end."""

    def take(self, chunk: Chunk, at: float) -> None:
        """Add a chunk, or a whole answer."""
        self.id = self.id or chunk.id
        counted: int | None = 0
        for choice in chunk.choices:
            sequence = self.sequences.setdefault(choice.index, Sequence())
            words = choice.words
            sequence.text += words
            sequence.finish_reason = choice.finish_reason or sequence.finish_reason
            if choice.token_ids is not None:
                sequence.token_ids += choice.token_ids
                counted = None if counted is None else counted + len(choice.token_ids)
            elif words:
                counted = None
        if chunk.usage is not None:
            if counted is None and chunk.choices:
                counted = chunk.usage.completion_tokens - self.known_tokens
            self.usage = chunk.usage
        if counted is None or counted > 0:
            self.chunks.append((at, counted))

    @property
    def known_tokens(self) -> int:
        """Tokens of the chunks that say how many they hold."""
        return sum(count for _, count in self.chunks if count is not None)

    @property
    def is_complete(self) -> bool:
        return self.error is None and not self.left

    @property
    def input_tokens(self) -> int:
        return self.usage.prompt_tokens if self.usage else 0

    @property
    def output_tokens(self) -> int:
        """By usage, where the server has sent it."""
        return self.usage.completion_tokens if self.usage else self.known_tokens

    @property
    def tokens_by_chunk(self) -> list[tuple[float, float]]:
        """(time, tokens) of each chunk. What the server did not count is shared out evenly among those chunks."""
        uncounted = sum(count is None for _, count in self.chunks)
        share = max(0, self.output_tokens - self.known_tokens) / uncounted if uncounted else 0.0
        return [(at, share if count is None else count) for at, count in self.chunks]

    @property
    def ttft(self) -> float | None:
        """Seconds from sending to the first token; None without any."""
        return self.chunks[0][0] - self.sent_at if self.chunks else None

    @property
    def e2e(self) -> float:
        """Seconds from sending to the end of the answer."""
        return self.ended_at - self.sent_at

    @property
    def tpot(self) -> float | None:
        """Seconds a token after the first; None with fewer than two tokens."""
        if self.ttft is None or self.output_tokens < 2:
            return None
        return (self.e2e - self.ttft) / (self.output_tokens - 1)

"""What the two generating endpoints differ in: how a request is read, and how answers and chunks are worded."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from engine.ipc import Submit
from engine.server.choice_text import Piece, ScoredToken
from engine.server.fields import Fields
from engine.server.openai_protocol import Options
from engine.server.prompt_encoder import EncodedPrompt
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Job:
    """One HTTP request, ready to run. Sequence s belongs to prompt s // n and is choice s of the answer."""

    id: str
    created: int
    model: str
    tokenizer: Tokenizer
    options: Options
    prompts: list[EncodedPrompt]
    echo: bool = False

    @classmethod
    def new_id(cls, prefix: str) -> str:
        return f"{prefix}-{secrets.token_hex(12)}"

    @classmethod
    def now(cls) -> int:
        return int(time.time())

    @property
    def prompt_tokens(self) -> int:
        return sum(len(prompt.ids) for prompt in self.prompts)

    def prompt_of(self, sequence: int) -> EncodedPrompt:
        return self.prompts[sequence // self.options.n]

    def submits(self) -> list[Submit]:
        """The engine requests; a single one bears the answer's own id, so that the bus and HTTP speak of the same."""
        n = self.options.n
        count = len(self.prompts) * n
        return [
            Submit(
                request_id=self.id if count == 1 else f"{self.id}-{sequence}",
                prompt_ids=self.prompt_of(sequence).ids,
                sampling=self.options.sampling_for(self.prompt_of(sequence).room, sequence % n),
            )
            for sequence in range(count)
        ]


def choice_around(
    content: dict[str, Any],
    job: Job,
    index: int,
    piece: Piece,
    logprobs: Callable[[Tokenizer, list[ScoredToken]], dict[str, Any]],
) -> dict[str, Any]:
    """A choice of either dialect: its ``content``, and the fields that both have; ``logprobs`` words them."""
    choice = {
        "index": index,
        **content,
        "logprobs": logprobs(job.tokenizer, piece.scored) if job.options.sampling.logprobs is not None else None,
        "finish_reason": piece.finish_reason,
        "stop_reason": piece.stop_reason,
    }
    if job.options.return_token_ids:
        choice["token_ids"] = piece.token_ids
    return choice


class Dialect(Protocol):
    """One endpoint's way of reading and answering."""

    async def prepare(self, fields: Fields) -> Job:
        """Read, check and tokenize a request; raises ApiError."""

    def choice(self, job: Job, index: int, piece: Piece) -> dict[str, Any]:
        """A whole choice of a plain answer."""

    def chunk_choice(self, job: Job, index: int, piece: Piece, first: bool) -> dict[str, Any]:
        """A choice of a streamed chunk; ``first`` for the sequence's first."""

    def envelope(self, job: Job, streamed: bool) -> dict[str, Any]:
        """What surrounds the choices: id, object, created, model."""

"""``/v1/completions``: raw prompts, several at once, and their continuation."""

from __future__ import annotations

from typing import Any

from engine.server.choice_text import Piece
from engine.server.dialect import Job, choice_around
from engine.server.fields import Fields
from engine.server.logprobs import completion_logprobs
from engine.server.openai_protocol import parse_completion
from engine.server.service import Service


class CompletionDialect:
    """OpenAI's completions."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def prepare(self, fields: Fields) -> Job:
        ready = self._service.require_ready()
        call = parse_completion(fields)
        self._service.check(call.options)
        encoder = self._service.encoder
        prompts = [await encoder.encode(prompt, ready.max_model_len, ready.vocab_size) for prompt in call.prompts]
        return Job(
            id=Job.new_id("cmpl"),
            created=Job.now(),
            model=self._service.model_name,
            tokenizer=encoder.tokenizer,
            options=call.options,
            prompts=prompts,
            echo=call.echo,
        )

    def choice(self, job: Job, index: int, piece: Piece) -> dict[str, Any]:
        choice = self.chunk_choice(job, index, piece, first=True)
        if job.options.return_token_ids:
            choice["prompt_token_ids"] = job.prompt_of(index).ids
        return choice

    def chunk_choice(self, job: Job, index: int, piece: Piece, first: bool) -> dict[str, Any]:
        prompt = job.prompt_of(index)
        echoed = ""
        if job.echo and first:
            echoed = prompt.text if prompt.text is not None else job.tokenizer.decode(prompt.ids)
        return choice_around({"text": echoed + piece.text}, job, index, piece, completion_logprobs)

    def envelope(self, job: Job, streamed: bool) -> dict[str, Any]:
        return {"id": job.id, "object": "text_completion", "created": job.created, "model": job.model}

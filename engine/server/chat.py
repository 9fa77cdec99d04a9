"""``/v1/chat/completions``: a conversation by the model's own template, and the assistant's next turn."""

from __future__ import annotations

from typing import Any

from engine.server.choice_text import Piece
from engine.server.dialect import Job, choice_around
from engine.server.fields import Fields
from engine.server.logprobs import chat_logprobs
from engine.server.openai_protocol import parse_chat
from engine.server.service import Service


class ChatDialect:
    """OpenAI's chat completions."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def prepare(self, fields: Fields) -> Job:
        ready = self._service.require_ready()
        call = parse_chat(fields)
        self._service.check(call.options)
        encoder = self._service.encoder
        prompt = await encoder.encode_chat(call.messages, ready.max_model_len, ready.vocab_size)
        return Job(
            id=Job.new_id("chatcmpl"),
            created=Job.now(),
            model=self._service.model_name,
            tokenizer=encoder.tokenizer,
            options=call.options,
            prompts=[prompt],
        )

    def choice(self, job: Job, index: int, piece: Piece) -> dict[str, Any]:
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        return choice_around({"message": message}, job, index, piece, chat_logprobs)

    def chunk_choice(self, job: Job, index: int, piece: Piece, first: bool) -> dict[str, Any]:
        delta = {"role": "assistant", "content": piece.text} if first else {"content": piece.text}
        return choice_around({"delta": delta}, job, index, piece, chat_logprobs)

    def envelope(self, job: Job, streamed: bool) -> dict[str, Any]:
        kind = "chat.completion.chunk" if streamed else "chat.completion"
        envelope: dict[str, Any] = {"id": job.id, "object": kind, "created": job.created, "model": job.model}
        if job.options.return_token_ids and not streamed:
            envelope["prompt_token_ids"] = job.prompts[0].ids  # what the template made of the messages
        return envelope

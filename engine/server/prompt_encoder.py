"""Prompts to token ids, with the checks that the context length and the vocabulary ask for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from engine.server.api_error import ApiError, bad_field
from engine.server.openai_protocol import Prompt
from engine.text.chat_template import ChatTemplate, ChatTemplateError
from engine.text.tokenizer import Tokenizer

INLINE_CHARS = 4096
"""Longer texts are tokenized in a thread, so that the event loop never waits for them."""


@dataclass(frozen=True, kw_only=True)
class EncodedPrompt:
    """A prompt that fits."""

    ids: list[int]
    room: int
    """Tokens that the context leaves for the answer."""
    text: str | None = None
    """The text it came from; None for a prompt of token ids."""


class PromptEncoder:
    """Tokenizes for one model."""

    def __init__(self, tokenizer: Tokenizer, chat_template: ChatTemplate | None) -> None:
        self.tokenizer = tokenizer
        self.chat_template = chat_template

    async def encode(
        self, prompt: Prompt, max_model_len: int, vocab_size: int, *, add_bos: bool = True, param: str = "prompt"
    ) -> EncodedPrompt:
        """Token ids of a prompt.

        Raises:
            ApiError: 400 when it is empty, names a token that does not exist, or leaves no room for an answer.
        """
        if isinstance(prompt, str):
            ids = await self._tokenize(prompt, add_bos)
            text: str | None = prompt
        else:
            ids, text = prompt, None
            wrong = next((token for token in ids if not 0 <= token < vocab_size), None)
            if wrong is not None:
                raise bad_field("prompt", f"got token id {wrong}, expected ids from 0 to {vocab_size - 1}")
        if not ids:
            raise bad_field("prompt", "is empty; send at least one token (this model has no start-of-text token)")
        room = max_model_len - len(ids)
        if room < 1:
            raise ApiError(
                400,
                f"the prompt has {len(ids)} tokens and the context is {max_model_len} tokens, prompt and answer "
                f"together; send at most {max_model_len - 1} prompt tokens, or serve with a larger --max-model-len",
                code="context_length_exceeded",
                param=param,
            )
        return EncodedPrompt(ids=ids, room=room, text=text)

    async def encode_chat(self, messages: list[dict[str, str]], max_model_len: int, vocab_size: int) -> EncodedPrompt:
        """Token ids of a conversation, by the model's own template.

        Raises:
            ApiError: 400 when there is no template, it refuses the messages, or the prompt is too long.
        """
        if self.chat_template is None:
            raise ApiError(
                400, "this model has no chat template; use /v1/completions", code="no_chat_template", param="messages"
            )
        try:
            text = self.chat_template.render(messages)
        except ChatTemplateError as error:
            raise ApiError(400, str(error), code="invalid_value", param="messages") from None
        return await self.encode(text, max_model_len, vocab_size, add_bos=False, param="messages")

    async def _tokenize(self, text: str, add_bos: bool) -> list[int]:
        if len(text) <= INLINE_CHARS:
            return self.tokenizer.encode(text, add_bos=add_bos)
        return await asyncio.to_thread(self.tokenizer.encode, text, add_bos=add_bos)

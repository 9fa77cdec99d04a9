"""What an engine can take: a request is checked once, at the door."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from engine.kv.ledger import KvLedger
from engine.models.shapes import LlamaShape
from engine.request import Request
from engine.sampling_params import SamplingError, SamplingParams
from engine.stop_conditions import StopConditions
from engine.text.tokenizer import Tokenizer


class RequestRefusedError(ValueError):
    """A request that can never run. ``status`` and ``code`` are for the HTTP answer, ``field`` names the culprit."""

    def __init__(
        self, message: str, *, status: int = 400, code: str = "invalid_request", field: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


class Admission:
    """The limits of one engine: vocabulary, context, KV pool."""

    def __init__(self, shape: LlamaShape, tokenizer: Tokenizer | None, ledger: KvLedger, max_model_len: int) -> None:
        self._vocab_size = shape.vocab_size
        self._tokenizer = tokenizer
        self._eos = (tokenizer.eos_token_ids if tokenizer is not None else ()) or shape.eos_token_ids
        self._ledger = ledger
        self._max_model_len = max_model_len

    def make_request(self, request_id: str, prompt_ids: Sequence[int], sampling: SamplingParams) -> Request:
        """Check a request and make it; ``max_tokens`` is clamped to the room that the context leaves.

        Raises:
            RequestRefusedError: naming the field.
        """
        try:
            sampling.check(self._vocab_size)
            stops = StopConditions.of(sampling, self._eos, self._tokenizer, prompt_ids)
        except SamplingError as error:
            raise RequestRefusedError(str(error), field=error.field) from error
        except ValueError as error:
            raise RequestRefusedError(str(error), field="stop") from error
        room = self._room_behind(prompt_ids)
        request = Request(
            request_id=request_id,
            prompt_len=len(prompt_ids),
            ids=list(prompt_ids),
            sampling=sampling,
            seed=secrets.randbits(63) if sampling.seed is None else sampling.seed,
            max_tokens=min(sampling.max_tokens, room),
            stops=stops,
            arrived=time.monotonic(),
        )
        if not self._ledger.fits_ever(request.worst_case):
            raise RequestRefusedError(
                f"prompt and max_tokens need {request.worst_case} KV slots and the pool has {self._ledger.total}; "
                "lower max_tokens, shorten the prompt, or serve with more --kv-tokens",
                code="kv_pool_too_small",
                field="max_tokens",
            )
        return request

    def _room_behind(self, prompt_ids: Sequence[int]) -> int:
        """Tokens that the context leaves for an answer: at least 1."""
        if not prompt_ids:
            raise RequestRefusedError("the prompt is empty; expected at least one token", field="prompt")
        for token in prompt_ids:
            if not 0 <= token < self._vocab_size:
                raise RequestRefusedError(
                    f"prompt: token id {token} is outside the vocabulary of {self._vocab_size}", field="prompt"
                )
        room = self._max_model_len - len(prompt_ids)
        if room < 1:
            raise RequestRefusedError(
                f"the prompt has {len(prompt_ids)} tokens and the context is {self._max_model_len}: no room for an "
                "answer; shorten the prompt",
                code="context_length_exceeded",
                field="prompt",
            )
        return room

"""What a client may ask of sampling, and the limits of each value."""

from __future__ import annotations

import msgspec

MAX_LOGPROBS = 20


class SamplingError(ValueError):
    """A sampling parameter out of range. ``field`` names it, for an HTTP 400."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How to draw tokens, and when to stop. temperature 0 is greedy (ties go to the lowest id)."""

    max_tokens: int = 16
    """Most tokens to generate; the engine clamps it to the room that the context leaves."""
    temperature: float = 1.0
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    min_p: float = 0.0
    """Drop tokens less likely than min_p times the likeliest one."""
    seed: int | None = None
    """None: the engine draws one, so that two requests differ."""
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    """Number of likeliest tokens to report a position (0: only the chosen one's); None reports nothing.

    Log probabilities are of the model's own distribution, before temperature and filters.
    """

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    def check(self, vocab_size: int) -> None:
        """Refuse values out of range.

        Raises:
            SamplingError: naming the field, the value and what was expected.
        """

        def expect(ok: bool, field: str, value: object, expected: str) -> None:
            if not ok:
                raise SamplingError(field, f"{field}: got {value!r}, expected {expected}")

        expect(self.max_tokens >= 1, "max_tokens", self.max_tokens, "a whole number of at least 1")
        expect(0.0 <= self.temperature <= 100.0, "temperature", self.temperature, "a number from 0 to 100")
        expect(self.top_k >= 0, "top_k", self.top_k, "0 (off) or a positive whole number")
        expect(0.0 < self.top_p <= 1.0, "top_p", self.top_p, "a number above 0 and up to 1")
        expect(0.0 <= self.min_p <= 1.0, "min_p", self.min_p, "a number from 0 to 1")
        expect(
            self.seed is None or -(2**63) <= self.seed < 2**63, "seed", self.seed, "a whole number of at most 64 bits"
        )
        expect(len(self.stop) <= 16, "stop", len(self.stop), "at most 16 stop strings")
        expect(all(self.stop), "stop", "", "stop strings that are not empty")
        for token in self.stop_token_ids:
            expect(0 <= token < vocab_size, "stop_token_ids", token, f"token ids from 0 to {vocab_size - 1}")
        expect(
            self.logprobs is None or 0 <= self.logprobs <= MAX_LOGPROBS,
            "logprobs",
            self.logprobs,
            f"a whole number from 0 to {MAX_LOGPROBS}",
        )

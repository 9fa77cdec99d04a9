"""When a request ends: token ids, stop strings, and its budget, checked token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ipc import FinishReason
from engine.sampling_params import SamplingParams
from engine.text.detokenizer import IncrementalDetokenizer
from engine.text.stop_strings import StopMatcher
from engine.text.tokenizer import Tokenizer


@dataclass
class Cut:
    """What of a run of tokens is emitted."""

    emitted: int
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    text: str | None = None
    """Text that may be delivered now; only for requests with stop strings."""


@dataclass
class StopConditions:
    """Stop rules of one request. Text is made only when there are stop strings to look for."""

    token_ids: frozenset[int]
    matcher: StopMatcher | None = None
    detokenizer: IncrementalDetokenizer | None = None

    @classmethod
    def of(
        cls,
        sampling: SamplingParams,
        eos_token_ids: Sequence[int],
        tokenizer: Tokenizer | None,
        prompt_ids: Sequence[int] = (),
    ) -> StopConditions:
        """Rules for a request.

        Raises:
            ValueError: stop strings without a tokenizer to find them with.
        """
        ids = frozenset(sampling.stop_token_ids)
        if not sampling.ignore_eos:
            ids |= frozenset(eos_token_ids)
        if not sampling.stop:
            return cls(ids)
        if tokenizer is None:
            raise ValueError("stop strings need a tokenizer, and this engine was made without one")
        return cls(ids, StopMatcher(list(sampling.stop)), IncrementalDetokenizer(tokenizer, prompt_ids))

    def cut(self, tokens: Sequence[int], remaining: int) -> Cut:
        """The part of ``tokens`` that is emitted: up to a stop, and at most ``remaining``.

        The token that completes a stop is emitted (its text is not); nothing behind it is.
        """
        texts: list[str] = []

        def result(
            emitted: int, reason: FinishReason | None = None, stop: str | int | None = None, flush: bool = False
        ) -> Cut:
            if self.matcher is None or self.detokenizer is None:
                return Cut(emitted, reason, stop)
            if flush:
                tail = self.matcher.push(self.detokenizer.flush())
                texts.append(tail.text)
                if tail.matched is not None:
                    return Cut(emitted, "stop", tail.matched, "".join(texts))
                texts.append(self.matcher.flush())
            return Cut(emitted, reason, stop, "".join(texts))

        for count, token in enumerate(tokens[:remaining], start=1):
            if token in self.token_ids:
                return result(count, "stop", token, flush=True)
            if self.matcher is not None and self.detokenizer is not None:
                found = self.matcher.push(self.detokenizer.push([token]))
                texts.append(found.text)
                if found.matched is not None:
                    return result(count, "stop", found.matched)
            if count == remaining:
                return result(count, "length", flush=True)
        return result(len(tokens))

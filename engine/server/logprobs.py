"""OpenAI's two shapes of log probabilities: parallel lists for completions, objects for chat."""

from __future__ import annotations

from typing import Any

from engine.server.choice_text import ScoredToken
from engine.text.tokenizer import Tokenizer

LOWEST = -9999.0
"""Stands for minus infinity, which JSON cannot say."""


def token_label(tokenizer: Tokenizer, token_id: int) -> str:
    """A token as text; one that is not whole characters as ``bytes:\\xe2\\x82``, so that no two labels collide."""
    data = tokenizer.token_bytes(token_id)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def completion_logprobs(tokenizer: Tokenizer, tokens: list[ScoredToken]) -> dict[str, Any]:
    """``logprobs`` of a completions choice; the chosen token is always among ``top_logprobs``."""
    top_logprobs = []
    for token in tokens:
        likeliest = zip(token.scores.top_ids, token.scores.top, strict=True)
        top = {token_label(tokenizer, token_id): _finite(score) for token_id, score in likeliest}
        top.setdefault(token_label(tokenizer, token.token_id), _finite(token.scores.chosen))
        top_logprobs.append(top)
    return {
        "tokens": [token_label(tokenizer, token.token_id) for token in tokens],
        "token_logprobs": [_finite(token.scores.chosen) for token in tokens],
        "top_logprobs": top_logprobs,
        "text_offset": [token.text_offset for token in tokens],
    }


def chat_logprobs(tokenizer: Tokenizer, tokens: list[ScoredToken]) -> dict[str, Any]:
    """``logprobs`` of a chat choice."""
    content = []
    for token in tokens:
        likeliest = zip(token.scores.top_ids, token.scores.top, strict=True)
        top = [_chat_entry(tokenizer, token_id, score) for token_id, score in likeliest]
        content.append(_chat_entry(tokenizer, token.token_id, token.scores.chosen) | {"top_logprobs": top})
    return {"content": content, "refusal": None}


def _chat_entry(tokenizer: Tokenizer, token_id: int, score: float) -> dict[str, Any]:
    return {
        "token": token_label(tokenizer, token_id),
        "logprob": _finite(score),
        "bytes": list(tokenizer.token_bytes(token_id)),
    }


def _finite(score: float) -> float:
    return score if score > LOWEST else LOWEST

"""Requests over HTTP, by the standard library: greedy, of a fixed length, answered with token ids."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

REQUEST_S = 300.0
"""Longest silence of the server within one request."""


class RequestFailed(Exception):
    """A request got no usable answer; the message says which and why."""


@dataclass(frozen=True)
class Answer:
    """One generated sequence."""

    prompt_ids: list[int]
    """The prompt after the chat template."""
    token_ids: list[int]
    gaps: list[float] = field(default_factory=list)
    """By position: log probability of the likeliest token minus the second's; empty unless asked for."""
    text: str = ""


class Transport(Protocol):
    """What a comparison asks of an engine."""

    def chat(self, text: str, max_tokens: int, *, scored: bool = False) -> Answer: ...

    def complete(self, ids: Sequence[int], max_tokens: int) -> list[int]: ...


class OpenAiClient:
    """One connection a request; safe to use from several threads."""

    def __init__(self, url: str, timeout: float = REQUEST_S) -> None:
        """``url``: of the server, without ``/v1``."""
        self.url = url
        self._address = urllib.parse.urlsplit(url).netloc
        self._timeout = timeout

    def health(self) -> dict[str, Any]:
        """Body of ``/health``, whatever its status.

        Raises:
            RequestFailed: nobody answers there.
        """
        return self._call("GET", "/health", None)[1]

    def chat(self, text: str, max_tokens: int, *, scored: bool = False) -> Answer:
        """The assistant's turn on one user message, exactly ``max_tokens`` long unless the context is shorter.

        ``scored``: with the gap between the two likeliest tokens at each position.

        Raises:
            RequestFailed: no answer, or an error.
        """
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": text}], **_greedy(max_tokens)}
        if scored:
            asked |= {"logprobs": True, "top_logprobs": 2}
        body = self._post("/v1/chat/completions", asked)
        choice = body["choices"][0]
        gaps: list[float] = []
        if scored:
            for position in choice["logprobs"]["content"]:
                first, second = (entry["logprob"] for entry in position["top_logprobs"])
                gaps.append(first - second)
        said = choice["message"]["content"] or ""
        return Answer(prompt_ids=body["prompt_token_ids"], token_ids=choice["token_ids"], gaps=gaps, text=said)

    def complete(self, ids: Sequence[int], max_tokens: int) -> list[int]:
        """What follows after a prompt of token ids.

        Raises:
            RequestFailed: no answer, or an error.
        """
        body = self._post("/v1/completions", {"prompt": list(ids), **_greedy(max_tokens)})
        token_ids: list[int] = body["choices"][0]["token_ids"]
        return token_ids

    def _post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        status, body = self._call("POST", path, msgspec.json.encode(asked))
        if status != 200:
            error = body.get("error")
            reason = error.get("message") if isinstance(error, dict) else body
            raise RequestFailed(f"POST {path}: {status}: {reason}")
        return body

    def _call(self, method: str, path: str, sent: bytes | None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(self._address, timeout=self._timeout)
        try:
            connection.request(method, path, sent, {"content-type": "application/json"})
            response = connection.getresponse()
            body = msgspec.json.decode(response.read())
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            raise RequestFailed(f"{method} {self.url}{path}: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        return response.status, body if isinstance(body, dict) else {}


def _greedy(max_tokens: int) -> dict[str, Any]:
    """ignore_eos: every setting then does the same work, token for token."""
    return {"temperature": 0, "max_tokens": max_tokens, "ignore_eos": True, "return_token_ids": True}

"""Messages between the server process and the engine process: msgpack over two ZeroMQ PUSH/PULL pipes.

The server makes fresh endpoints for every engine boot, so nothing sent to a dead engine reaches its successor.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.sampling_params import SamplingParams

FinishReason = Literal["stop", "length", "abort", "error"]


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag="submit"):
    """A request, already tokenized."""

    request_id: str
    prompt_ids: list[int]
    sampling: SamplingParams


class Abort(msgspec.Struct, frozen=True, kw_only=True, tag="abort"):
    """The client left; unknown or finished ids are ignored."""

    request_id: str


class Shutdown(msgspec.Struct, frozen=True, kw_only=True, tag="shutdown"):
    """Finish the step, abort what runs, close the bus, exit."""


ToEngine = Submit | Abort | Shutdown


class TokenLogprobs(msgspec.Struct, frozen=True, kw_only=True):
    """Log probabilities of one emitted token: the chosen one's, and the likeliest ones in falling order."""

    chosen: float
    top_ids: list[int] = []
    top: list[float] = []


class Loading(msgspec.Struct, frozen=True, kw_only=True, tag="loading"):
    """Progress of the start, in words, for people."""

    boot_id: str
    message: str


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The engine has loaded, warmed up and bound its bus."""

    boot_id: str
    max_model_len: int
    vocab_size: int
    model_name: str
    warnings: list[str] = []


class Output(msgspec.Struct, frozen=True, kw_only=True, tag="output"):
    """What one step gave one request: at most one message a request and step."""

    request_id: str
    token_ids: list[int] = []
    logprobs: list[TokenLogprobs] | None = None
    """One a token, when asked for."""
    text: str | None = None
    """Text of these tokens, held back and cut at stop strings; only for requests with stop strings. Without, the
    server detokenizes by itself."""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    """The stop string or stop token id that ended the request."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """So far, this message included."""
    verify_steps: int = 0
    correct_drafts: int = 0


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The request ended with an error; nothing more comes for it."""

    request_id: str
    status: int
    """HTTP status to answer with: 400 (the client's fault), 429, 500, 503."""
    code: str
    message: str
    field: str | None = None


class Fatal(msgspec.Struct, frozen=True, kw_only=True, tag="fatal"):
    """The engine cannot start or go on; the process exits after this. ``retry`` false: restarting will not help."""

    boot_id: str
    message: str
    retry: bool = False


FromEngine = Loading | Ready | Output | Failed | Fatal

encode = msgspec.msgpack.Encoder().encode
decode_to_engine = msgspec.msgpack.Decoder(ToEngine).decode
decode_from_engine = msgspec.msgpack.Decoder(FromEngine).decode

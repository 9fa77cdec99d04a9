"""What a request to ``/v1/completions`` or ``/v1/chat/completions`` asks for, read and checked field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from engine.sampling_params import MAX_LOGPROBS, SamplingParams
from engine.server.api_error import bad_field
from engine.server.fields import Fields, is_integer, shown
from engine.server.unimplemented import refuse_unimplemented

MAX_CHOICES = 8
MAX_PROMPTS = 64
MAX_STOPS = 16
COMPLETION_MAX_TOKENS = 16
"""OpenAI's default for the completions endpoint; chat takes the rest of the context."""
ROLES = ("system", "developer", "user", "assistant")

Prompt = str | list[int]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What both endpoints share."""

    model: str | None
    n: int
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    max_tokens: int | None
    """None: the rest of the context."""
    sampling: SamplingParams
    """Everything but ``max_tokens``, which depends on the prompt's length."""

    def sampling_for(self, room: int, choice: int) -> SamplingParams:
        """Parameters of the ``choice``-th sequence of a prompt that leaves ``room`` tokens of context.

        A larger ``max_tokens`` is clamped to the room. With a seed, choice i draws with seed + i (in 64 bits).
        """
        seed = self.sampling.seed
        if seed is not None:
            seed = (seed + choice + 2**63) % 2**64 - 2**63
        limit = room if self.max_tokens is None else min(room, self.max_tokens)
        return msgspec.structs.replace(self.sampling, max_tokens=limit, seed=seed)


@dataclass(frozen=True, kw_only=True)
class CompletionCall:
    """A checked request to ``/v1/completions``."""

    options: Options
    prompts: list[Prompt]
    echo: bool


@dataclass(frozen=True, kw_only=True)
class ChatCall:
    """A checked request to ``/v1/chat/completions``."""

    options: Options
    messages: list[dict[str, str]]


def parse_completion(fields: Fields) -> CompletionCall:
    """Read a completion request.

    Raises:
        ApiError: 400 naming the field.
    """
    refuse_unimplemented(fields)
    logprobs = fields.integer("logprobs", 0, MAX_LOGPROBS)
    max_tokens = fields.integer("max_tokens", 1)
    options = _options(fields, logprobs, COMPLETION_MAX_TOKENS if max_tokens is None else max_tokens)
    best_of = fields.integer("best_of", 1)
    if best_of is not None and best_of > options.n:
        raise bad_field(
            "best_of",
            f"{best_of} is not supported by this server beyond n ({options.n}); leave it out",
            code="unsupported_parameter",
        )
    echo = fields.boolean("echo")
    if echo and logprobs is not None:
        raise bad_field("echo", "is not supported together with logprobs; ask for one of them", "unsupported_parameter")
    return CompletionCall(options=options, prompts=_prompts(fields), echo=echo)


def parse_chat(fields: Fields) -> ChatCall:
    """Read a chat request.

    Raises:
        ApiError: 400 naming the field.
    """
    refuse_unimplemented(fields)
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", 0, MAX_LOGPROBS)
    if top and not wanted:
        raise bad_field("top_logprobs", "needs logprobs: true beside it")
    max_tokens = fields.integer("max_completion_tokens", 1)
    if max_tokens is None:
        max_tokens = fields.integer("max_tokens", 1)
    options = _options(fields, (top or 0) if wanted else None, max_tokens)
    return ChatCall(options=options, messages=_messages(fields))


def _options(fields: Fields, logprobs: int | None, max_tokens: int | None) -> Options:
    n = fields.integer("n", 1, MAX_CHOICES)
    stream = fields.boolean("stream")
    stream_options = fields.object("stream_options")
    if stream_options is not None and not stream:
        raise bad_field("stream_options", "needs stream: true beside it")
    top_k = fields.integer("top_k", -1)  # -1 is how other servers spell "all"
    sampling = SamplingParams(
        temperature=fields.number("temperature", 1.0),
        top_k=max(0, top_k or 0),
        top_p=fields.number("top_p", 1.0),
        min_p=fields.number("min_p", 0.0),
        seed=fields.integer("seed", -(2**63), 2**63 - 1),
        stop=_stops(fields),
        stop_token_ids=_stop_token_ids(fields),
        ignore_eos=fields.boolean("ignore_eos"),
        logprobs=logprobs,
    )
    return Options(
        model=fields.string("model"),
        n=1 if n is None else n,
        stream=stream,
        include_usage=stream_options is not None and stream_options.boolean("include_usage"),
        continuous_usage=stream_options is not None and stream_options.boolean("continuous_usage_stats"),
        return_token_ids=fields.boolean("return_token_ids"),
        max_tokens=max_tokens,
        sampling=sampling,
    )


def _stops(fields: Fields) -> tuple[str, ...]:
    value = fields.raw("stop")
    stops = [value] if isinstance(value, str) else (value or [])
    if not isinstance(stops, list) or len(stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in stops):
        raise fields.wrong("stop", f"a string or a list of at most {MAX_STOPS} strings, none of them empty")
    return tuple(stops)


def _stop_token_ids(fields: Fields) -> tuple[int, ...]:
    ids = fields.array("stop_token_ids") or []
    if not all(is_integer(token) for token in ids):
        raise fields.wrong("stop_token_ids", "a list of token ids")
    return tuple(ids)


def _prompts(fields: Fields) -> list[Prompt]:
    """The four shapes of ``prompt``: a string, token ids, or a list of either."""
    value = fields.raw("prompt")
    if value is None:
        raise bad_field("prompt", "is missing; send a string, a list of token ids, or a list of either")
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise fields.wrong("prompt", "a string, a list of token ids, or a list of either")
    if not value:
        raise bad_field("prompt", "is an empty list; send at least one token or one string")
    if all(is_integer(item) for item in value):
        return [value]
    if len(value) > MAX_PROMPTS:
        raise bad_field("prompt", f"got {len(value)} prompts, expected at most {MAX_PROMPTS} a request")
    for index, item in enumerate(value):
        if isinstance(item, str) or (isinstance(item, list) and item and all(is_integer(token) for token in item)):
            continue
        raise bad_field(
            "prompt", f"prompt[{index}]: got {shown(item)}, expected a string or a list of at least one token id"
        )
    return list(value)


def _messages(fields: Fields) -> list[dict[str, str]]:
    items = fields.array("messages")
    if not items:
        raise bad_field("messages", "is missing or empty; send at least one message with role and content")
    return [_message(item, f"messages[{index}]") for index, item in enumerate(items)]


def _message(item: Any, path: str) -> dict[str, str]:
    if not isinstance(item, dict):
        raise bad_field(path, f"got {shown(item)}, expected an object with role and content")
    message = Fields(item, f"{path}.")
    role = message.string("role")
    if role not in ROLES:
        raise message.wrong("role", f"one of {', '.join(ROLES)} (tools are not supported)")
    for name in ("tool_calls", "function_call", "audio"):
        if message.raw(name):
            raise bad_field(message.path(name), "is not supported by this server", code="unsupported_parameter")
    content = _content(message, path)
    return {"role": "system" if role == "developer" else role, "content": content}


def _content(message: Fields, path: str) -> str:
    """A string, or a list of text parts, joined by newlines."""
    content = message.raw("content")
    if isinstance(content, str):
        return content
    if content is None and message.raw("role") == "assistant":
        return ""  # OpenAI sends null beside tool calls
    if not isinstance(content, list):
        raise message.wrong("content", "a string or a list of text parts")
    texts = []
    for index, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise bad_field(
                f"{path}.content[{index}]", f'got {shown(part)}, expected {{"type": "text", "text": "…"}} (text only)'
            )
        texts.append(text)
    return "\n".join(texts)

"""Requests, field by field, without a server."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from engine.sampling_params import SamplingError
from engine.server.api_error import ApiError
from engine.server.fields import Fields
from engine.server.openai_protocol import COMPLETION_MAX_TOKENS, parse_chat, parse_completion
from engine.server.unimplemented import NEUTRAL

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
COMPLETION: dict[str, Any] = {"prompt": "hi"}
COMMON = [
    *("model", "stream", "stream_options", "n", "seed", "stop", "stop_token_ids", "temperature", "top_p", "top_k"),
    *("min_p", "ignore_eos", "logprobs", "max_tokens", "return_token_ids", "user", "metadata"),
]


def refused(parse: Any, body: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse(Fields(body))
    assert caught.value.status == 400
    return caught.value


@pytest.mark.parametrize("name", [*COMMON, "echo", "best_of", *NEUTRAL])
def test_null_is_omitted_in_completions(name: str) -> None:
    """B76."""
    assert parse_completion(Fields({**COMPLETION, name: None})) == parse_completion(Fields(COMPLETION))


@pytest.mark.parametrize("name", [*COMMON, "max_completion_tokens", "top_logprobs", *NEUTRAL])
def test_null_is_omitted_in_chat(name: str) -> None:
    """B76."""
    assert parse_chat(Fields({**CHAT, name: None})) == parse_chat(Fields(CHAT))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("tool_choice", "required"),
        ("response_format", {"type": "json_object"}),
        ("frequency_penalty", 0.5),
        ("presence_penalty", -1),
        ("logit_bias", {"5": 1}),
        ("logit_bias", "AI"),
        ("audio", {"voice": "alloy"}),
        ("modalities", ["text", "audio"]),
        ("suffix", "end"),
        ("repetition_penalty", 1.1),
        ("min_tokens", 3),
        ("store", True),
    ],
)
def test_fields_without_implementation_are_named(name: str, value: object) -> None:
    """B83, B73 (logit_bias): never a 200 that ignores them."""
    for parse, body in ((parse_chat, CHAT), (parse_completion, COMPLETION)):
        error = refused(parse, {**body, name: value})
        assert error.param == name
        assert name in error.message
        assert error.code == "unsupported_parameter"


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_values_are_fine(name: str) -> None:
    """B83: a client that spells out the default is not refused."""
    for value in NEUTRAL[name]:
        parse_chat(Fields({**CHAT, name: value}))


def test_zero_in_any_spelling_is_neutral_but_false_is_not() -> None:
    parse_chat(Fields({**CHAT, "frequency_penalty": 0.0}))
    assert refused(parse_chat, {**CHAT, "frequency_penalty": False}).param == "frequency_penalty"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0),
        ("n", 9),
        ("n", "2"),
        ("n", True),
        ("stream", "yes"),
        ("max_tokens", 0),
        ("max_tokens", 5.0),
        ("max_tokens", -1),
        ("temperature", "hot"),
        ("temperature", True),
        ("seed", 1.5),
        ("seed", 2**63),
        ("stop", 5),
        ("stop", ["a", ""]),
        ("stop", ["x"] * 17),
        ("stop_token_ids", ["1"]),
        ("ignore_eos", 1),
        ("model", 7),
        ("stream_options", []),
        ("stream_options", {"include_usage": True}),  # without stream
        ("top_k", -2),
    ],
)
def test_wrong_values_name_their_field(name: str, value: object) -> None:
    for parse, body in ((parse_chat, CHAT), (parse_completion, COMPLETION)):
        error = refused(parse, {**body, name: value})
        assert error.param == name
        assert error.message.startswith(name)


@pytest.mark.parametrize(
    "prompt", [None, [], [[]], ["a", []], [1, "a"], [[1], "a", 5], 5, {"a": 1}, [True], [[1.5]], ["x"] * 65]
)
def test_bad_prompts(prompt: object) -> None:
    """B74."""
    assert refused(parse_completion, {"prompt": prompt}).param == "prompt"


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), ([1, 2], [[1, 2]]), ([[1], [2, 3]], [[1], [2, 3]]), ("", [""])],
)
def test_four_shapes_of_prompt(prompt: object, prompts: object) -> None:
    assert parse_completion(Fields({"prompt": prompt})).prompts == prompts


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hi", "messages[0]"),
        ({"content": "hi"}, "messages[0].role"),
        ({"role": "tool", "content": "hi"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": None}, "messages[0].content"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "messages[0].content[0]"),
        ({"role": "assistant", "content": None, "tool_calls": [{}]}, "messages[0].tool_calls"),
    ],
)
def test_bad_messages(message: object, param: str) -> None:
    """B74."""
    assert refused(parse_chat, {"messages": [message]}).param == param


@pytest.mark.parametrize("messages", [None, [], "hi"])
def test_no_messages(messages: object) -> None:
    """B74."""
    assert refused(parse_chat, {"messages": messages}).param == "messages"


def test_messages_in_all_shapes() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    call = parse_chat(
        Fields(
            {
                "messages": [
                    {"role": "developer", "content": "d"},
                    {"role": "user", "content": parts, "name": "me"},
                    {"role": "assistant", "content": None},
                ]
            }
        )
    )
    assert [message["role"] for message in call.messages] == ["system", "user", "assistant"]
    assert [message["content"] for message in call.messages] == ["d", "a\nb", ""]


def test_max_tokens_rule() -> None:
    """B78: one rule on both endpoints, and larger values are clamped to the room."""
    assert parse_completion(Fields(COMPLETION)).options.max_tokens == COMPLETION_MAX_TOKENS
    assert parse_chat(Fields(CHAT)).options.max_tokens is None
    both = parse_chat(Fields({**CHAT, "max_tokens": 5, "max_completion_tokens": 7}))
    assert both.options.max_tokens == 7
    for options in (
        parse_completion(Fields({**COMPLETION, "max_tokens": 10**6})).options,
        parse_chat(Fields({**CHAT, "max_tokens": 10**6})).options,
        parse_chat(Fields(CHAT)).options,
    ):
        assert options.sampling_for(room=33, choice=0).max_tokens == 33


def test_choices_draw_with_seeds_of_their_own() -> None:
    options = parse_chat(Fields({**CHAT, "n": 3, "seed": 2**63 - 2})).options
    assert [options.sampling_for(8, choice).seed for choice in range(3)] == [2**63 - 2, 2**63 - 1, -(2**63)]
    assert parse_chat(Fields({**CHAT, "n": 3})).options.sampling_for(8, 2).seed is None


def test_logprobs_of_both_endpoints() -> None:
    assert parse_completion(Fields({**COMPLETION, "logprobs": 0})).options.sampling.logprobs == 0
    assert parse_chat(Fields({**CHAT, "logprobs": True})).options.sampling.logprobs == 0
    assert parse_chat(Fields({**CHAT, "logprobs": True, "top_logprobs": 20})).options.sampling.logprobs == 20
    assert parse_chat(Fields({**CHAT, "logprobs": False})).options.sampling.logprobs is None
    assert refused(parse_completion, {**COMPLETION, "logprobs": 21}).param == "logprobs"
    assert refused(parse_completion, {**COMPLETION, "logprobs": True}).param == "logprobs"
    assert refused(parse_chat, {**CHAT, "logprobs": 3}).param == "logprobs"
    assert refused(parse_chat, {**CHAT, "top_logprobs": 3}).param == "top_logprobs"


@pytest.mark.parametrize("logprobs", [0, 1, 5])
def test_echo_with_logprobs_is_refused(logprobs: int) -> None:
    """B75: a 400, never a 500 or missing scores."""
    assert refused(parse_completion, {**COMPLETION, "echo": True, "logprobs": logprobs}).param == "echo"


def test_best_of() -> None:
    assert refused(parse_completion, {**COMPLETION, "best_of": 3, "n": 2}).param == "best_of"
    parse_completion(Fields({**COMPLETION, "best_of": 2, "n": 2}))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": "\\ud800"}', b"\xff"]
)
def test_bodies_that_are_no_json_objects(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        Fields.decode(body)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


def test_deeply_nested_body() -> None:
    with pytest.raises(ApiError):
        Fields.decode(b"[" * 100_000)


def test_error_body_is_openais() -> None:
    body = json.loads(json.dumps(refused(parse_chat, {**CHAT, "n": 0}).body()))
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["type"] == "invalid_request_error"


WEIRD: list[Any] = [
    *(0, -1, 1.5, 10**30, 10**400, True, "", "AI", "\x00", [], [[]], [None], [10**400], {}, {"a": None}, [{}]),
    *([{"role": "user"}], [{"role": "user", "content": [{"type": "text"}]}], {"include_usage": 1}, [-1], "9" * 9999),
]


@pytest.mark.parametrize("value", WEIRD, ids=range(len(WEIRD)))
def test_no_value_of_any_field_is_worse_than_a_400(value: Any) -> None:
    """B76: every field with every kind of value, two at a time: read, or a 400; and what was read can be checked."""
    names = [*COMMON, *NEUTRAL, "prompt", "messages", "echo", "best_of", "max_completion_tokens", "top_logprobs"]
    for parse, body in ((parse_chat, CHAT), (parse_completion, COMPLETION)):
        for name in names:
            for extra in ({}, {"stream": True}, {"logprobs": value}, {"n": 8, "seed": value}):
                with contextlib.suppress(ApiError, SamplingError):
                    call = parse(Fields({**body, **extra, name: value}))
                    call.options.sampling_for(5, 7).check(320)

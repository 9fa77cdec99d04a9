"""The official Python client, unmodified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.engine.server.server_under_test import ServerUnderTest

USER: Any = [{"role": "user", "content": "Say hello."}]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    engine = {"model": "tiny-random", "dtype": "float32", "threads": 1, "max_model_len": 256}
    with ServerUnderTest(tmp_path_factory.mktemp("openai"), engine=engine) as server:
        server.wait_ready()
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=60) as client:
            yield client


def test_models(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert client.models.retrieve("default").id == model.id


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="default", messages=USER, max_tokens=12, temperature=0)
    choice = answer.choices[0]
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("length", "stop")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert (answer.usage.model_extra or {})["specwb"].keys() == {"verify_steps", "correct_drafts", "accept_length"}
    assert answer.model == client.models.list().data[0].id


def test_streaming(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="default", messages=USER, max_tokens=24, temperature=0)
    chunks = list(
        client.chat.completions.create(model="default", messages=USER, max_tokens=24, temperature=0, stream=True)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_of_a_stream(client: openai.OpenAI) -> None:
    """B67: on both endpoints, one last chunk without choices, and only when asked."""
    options: Any = {"include_usage": True}
    chat = list(
        client.chat.completions.create(
            model="default",
            messages=USER,
            max_tokens=9,
            stream=True,
            stream_options=options,
            extra_body={"ignore_eos": True},
        )
    )
    text = list(
        client.completions.create(
            model="default",
            prompt="x",
            max_tokens=9,
            stream=True,
            stream_options=options,
            extra_body={"ignore_eos": True},
        )
    )
    for chunks in (chat, text):
        assert chunks[-1].choices == []
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 9
        assert all(chunk.usage is None for chunk in chunks[:-1])


def test_stop_and_seed(client: openai.OpenAI) -> None:
    def ask(**fields: Any) -> str:
        answer = client.completions.create(model="default", prompt="Seed", max_tokens=20, seed=5, **fields)
        return str(answer.choices[0].text)

    text = ask(extra_body={"ignore_eos": True})
    assert ask(extra_body={"ignore_eos": True}) == text
    stop = text[4:6]
    assert ask(stop=[stop], extra_body={"ignore_eos": True}) == text[: text.index(stop)]


def test_log_probabilities(client: openai.OpenAI) -> None:
    """B85."""
    answer = client.chat.completions.create(
        model="default", messages=USER, max_tokens=6, logprobs=True, top_logprobs=20, extra_body={"ignore_eos": True}
    )
    scores = answer.choices[0].logprobs
    assert scores is not None
    assert scores.content is not None
    assert len(scores.content) == 6
    assert all(len(entry.top_logprobs) == 20 and entry.bytes is not None for entry in scores.content)
    text = client.completions.create(model="default", prompt="x", max_tokens=6, logprobs=5)
    assert text.choices[0].logprobs is not None
    assert text.choices[0].logprobs.tokens is not None


def test_errors_raise_the_exception_that_fits(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="default", messages=USER, temperature=-1)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as tools:
        client.chat.completions.create(
            model="default", messages=USER, tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]
        )
    assert tools.value.param == "tools"
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="default", prompt=[5] * 300)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4", messages=USER)
    assert missing.value.code == "model_not_found"

"""The whole way: HTTP, server process, engine process, a tiny random model with speculation on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.models.text_assets import load_text
from tests.engine.server.server_under_test import ServerUnderTest, until

MAX_MODEL_LEN = 256
TOKENIZER = load_text("tiny-random").tokenizer
GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    engine = {
        "model": "tiny-random",
        "dtype": "float32",
        "threads": 1,
        "max_model_len": MAX_MODEL_LEN,
        "max_running": 8,
        "max_queue": 64,
        "page_size": 64,
        "kv_tokens": 8192,
        "prefill_chunk": 64,
        "debug_checks": True,
    }
    with ServerUnderTest(tmp_path_factory.mktemp("serving"), engine=engine) as server:
        server.wait_ready()
        yield server


def complete(http: httpx.Client, prompt: Any, **fields: Any) -> dict[str, Any]:
    answer = http.post("/v1/completions", json={"prompt": prompt, **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def chat(http: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    answer = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": text}], **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def streamed(http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream that ended well, without its [DONE]."""
    answer = http.post(path, json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    blocks = answer.text.removesuffix("\n\n").split("\n\n")
    assert blocks[-1] == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks[:-1]]


def text_of(events: list[dict[str, Any]]) -> str:
    choices = [event["choices"][0] for event in events if event["choices"]]
    return "".join(choice["text"] if "text" in choice else choice["delta"]["content"] for choice in choices)


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 7, 16, 40])
def test_tokens_delivered_are_tokens_counted(http: httpx.Client, max_tokens: int) -> None:
    """B03, B84: ignore_eos: delivered ids = log probabilities = usage = max_tokens, streamed too."""
    fields = {**GREEDY, "max_tokens": max_tokens, "logprobs": 1, "return_token_ids": True}
    whole = complete(http, "Once upon a time", **fields)
    choice = whole["choices"][0]
    assert len(choice["token_ids"]) == len(choice["logprobs"]["tokens"]) == max_tokens
    assert whole["usage"]["completion_tokens"] == max_tokens
    assert choice["finish_reason"] == "length"
    options = {"include_usage": True}
    events = streamed(http, "/v1/completions", {"prompt": "Once upon a time", **fields, "stream_options": options})
    ids = [token for event in events[:-1] for token in event["choices"][0]["token_ids"]]
    assert ids == choice["token_ids"]
    assert text_of(events) == choice["text"]
    assert events[-1]["usage"]["completion_tokens"] == max_tokens


def test_the_answer_ends_at_the_first_stop_token(http: httpx.Client) -> None:
    """B01: each of the tokens that greedy decoding emits becomes the stop token in turn."""
    reference = complete(http, "Hello", **GREEDY, max_tokens=24, return_token_ids=True)["choices"][0]["token_ids"]
    for token in dict.fromkeys(reference):
        fields = {**GREEDY, "max_tokens": 24, "stop_token_ids": [token], "return_token_ids": True, "logprobs": 0}
        whole = complete(http, "Hello", **fields)
        choice = whole["choices"][0]
        expected = reference[: reference.index(token) + 1]
        assert choice["token_ids"] == expected
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", token)
        assert len(choice["logprobs"]["tokens"]) == len(expected) == whole["usage"]["completion_tokens"]
        assert choice["text"] == TOKENIZER.decode(expected[:-1])
        events = streamed(http, "/v1/completions", {"prompt": "Hello", **fields})
        assert [token for event in events for token in event["choices"][0]["token_ids"]] == expected


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_stop_strings_over_token_borders(http: httpx.Client, path: str) -> None:
    """B69, B05: stops of 1 to 8 characters, whole and streamed: nothing of it is delivered, same text both ways."""
    body: dict[str, Any] = {**GREEDY, "max_tokens": 24, "prompt": "Tell me"}
    if "chat" in path:
        body = {**GREEDY, "max_tokens": 24, "messages": [{"role": "user", "content": "Tell me"}]}
    answer = http.post(path, json=body).json()["choices"][0]
    text = answer["text"] if "text" in answer else answer["message"]["content"]
    middle = len(text) // 2
    for length in range(1, 9):
        stop = text[middle : middle + length]
        expected = text[: text.index(stop)]
        whole = http.post(path, json={**body, "stop": stop, "return_token_ids": True}).json()
        choice = whole["choices"][0]
        assert (choice["text"] if "text" in choice else choice["message"]["content"]) == expected
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
        assert len(choice["token_ids"]) == whole["usage"]["completion_tokens"]
        # Nothing past the token that completes the stop; what a broken character is shows only with the next token.
        assert stop.endswith("\ufffd") or stop not in TOKENIZER.decode(choice["token_ids"][:-1])
        events = streamed(http, path, {**body, "stop": [stop]})
        assert text_of(events) == expected
        assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_an_end_that_might_have_been_a_stop_is_delivered(http: httpx.Client) -> None:
    """B70: an answer that ends in a proper beginning of the stop string keeps it."""
    text = complete(http, "Once", **GREEDY, max_tokens=20)["choices"][0]["text"]
    stop = text[-2:] + "\x00never"
    body = {"prompt": "Once", **GREEDY, "max_tokens": 20, "stop": stop}
    assert complete(http, **body)["choices"][0]["text"] == text
    assert text_of(streamed(http, "/v1/completions", body)) == text


def test_characters_are_never_split(http: httpx.Client) -> None:
    """A random model emits bytes of all kinds; the pieces joined equal the whole, decoded once."""
    body = {"prompt": "世界", "temperature": 1.5, "seed": 11, "max_tokens": 200, "ignore_eos": True}
    events = streamed(http, "/v1/completions", {**body, "return_token_ids": True})
    ids = [token for event in events for token in event["choices"][0]["token_ids"]]
    assert text_of(events) == TOKENIZER.decode(ids)
    assert any(byte > 127 for token in ids for byte in TOKENIZER.token_bytes(token))


def test_seeds(http: httpx.Client) -> None:
    """A seed repeats an answer, choice i draws with seed + i, and no seed repeats nothing."""
    body = {"max_tokens": 24, "temperature": 1.0, "ignore_eos": True}
    first = complete(http, "Dice", **body, seed=7)["choices"][0]["text"]
    assert complete(http, "Dice", **body, seed=7)["choices"][0]["text"] == first
    both = complete(http, "Dice", **body, seed=6, n=2)["choices"]
    assert both[1]["text"] == first != both[0]["text"]
    free = {complete(http, "Dice", **body)["choices"][0]["text"] for _ in range(3)}
    assert len(free) > 1


def test_a_stop_leaves_the_next_request_alone(http: httpx.Client) -> None:
    """B05: the draws of a seeded request do not depend on what ran before."""
    body = {"max_tokens": 24, "temperature": 1.0, "ignore_eos": True, "seed": 3}
    reference = complete(http, "Again", **body)["choices"][0]["text"]
    complete(http, "Again", **body, stop=reference[3:5])
    assert complete(http, "Again", **body)["choices"][0]["text"] == reference


def test_many_short_requests(http: httpx.Client) -> None:
    """B39: max_tokens 1, far more than run together: all finish, and nothing was verified, which is null and not 0."""
    with ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(complete, http, f"prompt {number}", max_tokens=1) for number in range(60)]
        answers = [job.result() for job in jobs]
    assert {answer["usage"]["completion_tokens"] for answer in answers} == {1}
    assert {answer["usage"]["specwb"]["accept_length"] for answer in answers} == {None}


def test_over_the_queue_limit_some_are_refused_and_none_hang(http: httpx.Client) -> None:
    """B81: running 8, queue 64, 100 sent."""
    body = {"prompt": "x", "max_tokens": 16, "ignore_eos": True}
    limits = httpx.Limits(max_connections=100)
    with httpx.Client(base_url=http.base_url, timeout=60, limits=limits) as wide, ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: wide.post("/v1/completions", json=body), range(100)))
    assert {answer.status_code for answer in answers} <= {200, 429}
    assert sum(answer.status_code == 200 for answer in answers) >= 64
    assert complete(http, "x", max_tokens=1)["usage"]["completion_tokens"] == 1


def test_context_length(http: httpx.Client) -> None:
    """B77, B78: up to max_len - 1 fits, the rest is refused with both numbers; a huge max_tokens takes what is left."""
    ids = [5] * (MAX_MODEL_LEN - 1)
    assert complete(http, ids, **GREEDY, max_tokens=10**6)["usage"]["completion_tokens"] == 1
    for length in (MAX_MODEL_LEN, MAX_MODEL_LEN + 1, MAX_MODEL_LEN * 10):
        error = http.post("/v1/completions", json={"prompt": [5] * length}).json()["error"]
        assert error["code"] == "context_length_exceeded"
    text = "x!" * (MAX_MODEL_LEN // 2 - 20)
    for usage in (
        complete(http, text, **GREEDY, max_tokens=10**6)["usage"],
        chat(http, text, **GREEDY, max_tokens=10**6)["usage"],
        chat(http, text, **GREEDY)["usage"],
    ):
        assert usage["total_tokens"] == MAX_MODEL_LEN


def test_log_probabilities(http: httpx.Client) -> None:
    """The chosen token of greedy decoding is the likeliest; probabilities are those of the same answer without."""
    body = {**GREEDY, "max_tokens": 12}
    plain = complete(http, "Score", **body)["choices"][0]["text"]
    choice = complete(http, "Score", **body, logprobs=20)["choices"][0]
    assert choice["text"] == plain
    for score, top in zip(choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"], strict=True):
        assert score == max(top.values()) <= 0
        assert len(top) >= 20
    entry = chat(http, "Score", **body, logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"][0]
    assert len(entry["top_logprobs"]) == 3
    assert entry["top_logprobs"][0]["bytes"] == entry["bytes"]


def test_four_shapes_of_prompt_agree(http: httpx.Client) -> None:
    ids = TOKENIZER.encode("Same")
    for prompt in ("Same", ids, ["Same"], [ids]):
        assert (
            complete(http, prompt, **GREEDY, max_tokens=8)["choices"][0]["text"]
            == (complete(http, "Same", **GREEDY, max_tokens=8)["choices"][0]["text"])
        )
    two = complete(http, ["Same", "Other"], **GREEDY, max_tokens=8, n=2)
    assert [choice["index"] for choice in two["choices"]] == [0, 1, 2, 3]
    assert two["choices"][0]["text"] == two["choices"][1]["text"]
    assert two["usage"]["prompt_tokens"] == len(ids) + len(TOKENIZER.encode("Other"))


def test_bad_input_leaves_a_neighbour_alone(http: httpx.Client) -> None:
    """B73, B76: a running request does not notice refused ones; nothing is a 5xx."""
    reference = complete(http, "Neighbour", **GREEDY, max_tokens=64)["choices"][0]["text"]
    bad: list[dict[str, Any]] = [
        {"logit_bias": {"999999": 5}},
        {"logit_bias": "AI"},
        {"stop_token_ids": [10**9]},
        {"stop_token_ids": [-1]},
        {"prompt": [10**9]},
        {"temperature": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"min_p": 2},
        {"seed": 2**70},
        {"stop": [""]},
        {"logprobs": 21},
    ]
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(complete, http, "Neighbour", **GREEDY, max_tokens=64)
        for fields in bad:
            answer = http.post("/v1/completions", json={"prompt": "x", **fields})
            assert answer.status_code == 400, fields
            assert answer.json()["error"]["param"] == next(iter(fields))
        assert job.result()["choices"][0]["text"] == reference


def test_a_long_prefill_stays_healthy(http: httpx.Client) -> None:
    """B80."""
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(complete, http, [9] * (MAX_MODEL_LEN - 2), max_tokens=1) for _ in range(8)]
        while not all(job.done() for job in jobs):
            assert http.get("/health").status_code == 200
        for job in jobs:
            job.result()


def test_sigterm_ends_a_stream_and_the_engine_cleanly(tmp_path: Path) -> None:
    """Exit 0 within seconds, one error event for the stream, no traceback from either process."""
    engine = {"model": "tiny-random", "dtype": "float32", "threads": 1, "max_model_len": 4096}
    with ServerUnderTest(tmp_path, engine=engine, drain_s=0.1) as server, server.client() as http:
        server.wait_ready()
        body = {"prompt": "x", **GREEDY, "max_tokens": 4000, "stream": True}
        with http.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            assert server.stop() == 0
            last = [line for line in lines if line][-1]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_stopping"
        said = server.log.read_text()
        assert "Traceback" not in said
        assert "Fatal Python error" not in said


def test_a_killed_engine_comes_back(http: httpx.Client, server: ServerUnderTest) -> None:
    """Clients in flight get a 503, the next boot has another id and serves; the same greedy answer again."""
    boot = server.wait_ready()["boot_id"]
    reference = complete(http, "Back", **GREEDY, max_tokens=16)["choices"][0]["text"]
    with http.stream(
        "POST", "/v1/completions", json={"prompt": "x", **GREEDY, "max_tokens": 240, "stream": True}
    ) as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("data: ")
        os.kill(server.engine_pid(), signal.SIGKILL)
        last = [line for line in lines if line][-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "engine_restarting"
    until("health notices", lambda: http.get("/health").status_code == 503)
    server.wait_ready(boot_is_not=boot)
    assert complete(http, "Back", **GREEDY, max_tokens=16)["choices"][0]["text"] == reference

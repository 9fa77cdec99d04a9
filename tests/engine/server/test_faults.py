"""A real server in front of an engine that follows a script: errors, aborts, deaths, freezes."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.engine.server.server_under_test import ServerUnderTest, until

MAX_MODEL_LEN = 2048


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    engine = {"model": "tiny-random", "max_running": 4, "max_queue": 4}
    with ServerUnderTest(tmp_path_factory.mktemp("faults"), [], engine=engine, frozen_s=1.5) as server:
        server.wait_ready()
        yield server


def script(*actions: dict[str, Any]) -> str:
    return json.dumps(actions)


def complete(http: httpx.Client, *actions: dict[str, Any], **fields: Any) -> httpx.Response:
    return http.post("/v1/completions", json={"prompt": script(*actions), **fields})


def events(response: httpx.Response) -> list[Any]:
    """The payloads of a stream, ``[DONE]`` as a string."""
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("\n\n")
    blocks = response.text.removesuffix("\n\n").split("\n\n")
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [block if block == "data: [DONE]" else json.loads(block.removeprefix("data: ")) for block in blocks]


def report(http: httpx.Client) -> dict[str, Any]:
    """What the engine process has received so far."""
    answer: dict[str, Any] = json.loads(complete(http, {"report": True}).json()["choices"][0]["text"])
    return answer


def test_error_before_the_first_token_has_a_real_status(http: httpx.Client) -> None:
    """B79, B77: also when a stream was asked for."""
    for stream in (False, True):
        answer = complete(http, {"fail": 500, "code": "step_failed", "message": "lost it"}, stream=stream)
        assert answer.status_code == 500
        assert answer.json()["error"] == {
            "message": "lost it",
            "type": "server_error",
            "param": None,
            "code": "step_failed",
        }
    assert complete(http, {"fail": 400, "field": "max_tokens"}).json()["error"]["param"] == "max_tokens"
    full = complete(http, {"fail": 429, "code": "queue_full"}, stream=True)
    assert full.status_code == 429
    assert int(full.headers["retry-after"]) > 0
    assert http.post("/v1/completions", json={"prompt": "x", "n": 0, "stream": True}).status_code == 400


def test_error_in_mid_stream_is_one_event_and_then_the_end(http: httpx.Client) -> None:
    """B79."""
    chunks = [{"encode": word} for word in ("one", "two", "three")]
    got = events(complete(http, *chunks, {"fail": 500, "message": "broke"}, stream=True))
    assert [event["choices"][0]["text"] for event in got[:3]] == ["one", "two", "three"]
    assert got[3]["error"]["message"] == "broke"
    assert len(got) == 4  # no [DONE]: the stream is not complete


def test_one_chunk_an_output_and_usage_only_when_asked(http: httpx.Client) -> None:
    """B67, B84: chunks are steps, tokens are counted by usage and token_ids."""
    actions = (
        {"encode": "abc", "verify_steps": 1, "correct": 2},
        {"encode": "de", "verify_steps": 2, "correct": 3, "finish": "length"},
    )
    for options in (None, {}, {"include_usage": False}):
        got = events(complete(http, *actions, stream=True, stream_options=options))
        assert len(got) == 3
        assert all("usage" not in event for event in got[:-1])
        assert got[-1] == "data: [DONE]"
    got = events(complete(http, *actions, stream=True, stream_options={"include_usage": True}, return_token_ids=True))
    assert [event["usage"] for event in got[:2]] == [None, None]
    assert got[2]["choices"] == []
    usage = got[2]["usage"]
    delivered = sum(len(event["choices"][0]["token_ids"]) for event in got[:2])
    assert usage["completion_tokens"] == delivered
    assert usage["total_tokens"] == usage["prompt_tokens"] + delivered
    assert usage["specwb"] == {"verify_steps": 2, "correct_drafts": 3, "accept_length": 2.5}
    assert got[3] == "data: [DONE]"
    running = events(complete(http, *actions, stream=True, stream_options={"continuous_usage_stats": True}))
    counts = [event["usage"]["completion_tokens"] for event in running[:2]]
    assert counts == [len(got[0]["choices"][0]["token_ids"]), delivered]


def test_several_choices_finish_apart(http: httpx.Client) -> None:
    answer = complete(http, {"encode": "a"}, {"encode": "b", "finish": "stop"}, n=3, seed=5).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert [choice["text"] for choice in answer["choices"]] == ["ab"] * 3
    prompts = [script({"encode": word, "finish": "stop"}) for word in ("x", "y")]
    answer = http.post("/v1/completions", json={"prompt": prompts, "n": 2}).json()
    assert [choice["text"] for choice in answer["choices"]] == ["x", "x", "y", "y"]


def test_one_failing_choice_aborts_its_siblings(http: httpx.Client) -> None:
    before = report(http)["received"].get("Abort", 0)
    prompts = [script({"encode": "a"}, {"await_abort": True}), script({"fail": 500})]
    assert http.post("/v1/completions", json={"prompt": prompts}).status_code == 500
    assert report(http)["received"].get("Abort", 0) == before + 1


def test_normal_streams_send_no_abort(http: httpx.Client) -> None:
    """B72."""
    before = report(http)["received"].get("Abort", 0)
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(complete, http, {"encode": "a"}, {"encode": "b", "finish": "stop"}, stream=number % 2 == 0)
            for number in range(100)
        ]
        assert {job.result().status_code for job in jobs} == {200}
    assert report(http)["received"].get("Abort", 0) == before


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_is_one_abort(http: httpx.Client, server: ServerUnderTest, stream: bool) -> None:
    """B72: the connection just closes, with an answer under way or none yet."""
    before = report(http)["aborted"]
    body = json.dumps({"prompt": script({"encode": "a"}, {"await_abort": True}), "stream": stream}).encode()
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 80)) as raw:
        raw.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        if stream:
            assert raw.recv(12) == b"HTTP/1.1 200"
        else:
            until("the engine has the request", lambda: report(http)["waiting"] == 1)
    aborted = until("the abort arrives", lambda: (now := report(http)["aborted"]) != before and now)
    assert len(aborted) == len(before) + 1
    assert report(http)["aborted"] == aborted


def test_over_the_limit_is_answered_at_once(http: httpx.Client, server: ServerUnderTest) -> None:
    """B81: running 4, queue 4: the ninth gets a 429, and all is well after."""
    held = script({"encode": "a"}, {"await_abort": True})
    with ThreadPoolExecutor(8) as pool, server.client() as leaving:
        jobs = [pool.submit(leaving.post, "/v1/completions", json={"prompt": held}) for _ in range(8)]
        refused = until(
            "a 429", lambda: (r := complete(http, {"encode": "b", "finish": "stop"})).status_code == 429 and r
        )
        assert refused.json()["error"]["code"] == "queue_full"
        assert http.get("/health").status_code == 200
        os.kill(server.engine_pid(), signal.SIGKILL)
        assert {job.result().status_code for job in jobs} == {503}
    server.wait_ready()
    assert complete(http, {"encode": "b", "finish": "stop"}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_death_of_the_engine(http: httpx.Client, server: ServerUnderTest, stream: bool) -> None:
    """Clients in flight get a 503 or, in mid stream, one error event; the next boot has another id."""
    record = server.wait_ready()
    first = record["boot_id"]
    body = {"prompt": script({"encode": "a"}, {"await_abort": True}), "stream": stream}
    with ThreadPoolExecutor(1) as pool, server.client() as other:
        job = pool.submit(http.post, "/v1/completions", json=body)
        until("the engine has the request", lambda: report(other)["waiting"] == 1)
        os.kill(server.engine_pid(), signal.SIGKILL)
        answer = job.result()
    if stream:
        got = events(answer)
        assert got[0]["choices"][0]["text"] == "a"
        assert got[1]["error"]["code"] == "engine_restarting"
        assert len(got) == 2
    else:
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
    meanwhile = complete(http, {"encode": "a", "finish": "stop"})
    assert meanwhile.status_code in (200, 503)  # 200 when the restart was quicker than we
    health = http.get("/health")
    assert health.status_code == (200 if health.json()["status"] == "ready" else 503)
    assert http.get("/live").status_code == 200
    again = server.wait_ready(boot_is_not=first)
    assert report(http)["boot_id"] == again["boot_id"] != first
    assert (again["pid"], again["started_at"]) == (record["pid"], record["started_at"])
    assert report(http)["aborted"] == []


def test_a_frozen_engine_is_unhealthy_and_recovers(http: httpx.Client, server: ServerUnderTest) -> None:
    """B80: a stopped process shows within frozen_s; live and ready are distinct; new requests do not hang."""
    pid = server.engine_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        sick = until("health notices", lambda: (r := http.get("/health")).status_code == 503 and r)
        assert sick.json()["status"] == "stuck"
        assert "no heartbeat" in sick.json()["detail"]
        assert http.get("/live").status_code == 200
        assert complete(http, {"encode": "a", "finish": "stop"}).status_code == 503
    finally:
        os.kill(pid, signal.SIGCONT)
    until("health recovers", lambda: http.get("/health").status_code == 200)
    assert complete(http, {"encode": "a", "finish": "stop"}).status_code == 200


def test_context_limits_name_both_numbers(http: httpx.Client) -> None:
    """B77: 400 with a stable code from max_len on; B78: a huge max_tokens is clamped."""
    for length, status in ((MAX_MODEL_LEN, 400), (MAX_MODEL_LEN + 1, 400), (MAX_MODEL_LEN * 10, 400)):
        answer = http.post("/v1/completions", json={"prompt": [5] * length})
        assert answer.status_code == status
        error = answer.json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert str(length) in error["message"]
        assert str(MAX_MODEL_LEN) in error["message"]
    seen = complete(http, {"report": True}, max_tokens=10**6).json()
    sampling = json.loads(seen["choices"][0]["text"])["sampling"]
    assert sampling["max_tokens"] == MAX_MODEL_LEN - seen["usage"]["prompt_tokens"]


def test_prompt_ids_outside_the_vocabulary(http: httpx.Client) -> None:
    """B73."""
    for ids in ([10**6], [-1], [2**40]):
        answer = http.post("/v1/completions", json={"prompt": ids})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "prompt"
    answer = complete(http, {"encode": "a", "finish": "stop"}, stop_token_ids=[10**6])
    assert answer.json()["error"]["param"] == "stop_token_ids"


def test_empty_prompts(http: httpx.Client) -> None:
    """B74."""
    prompts: tuple[object, ...] = ("", [""], [], [[]])
    for prompt in prompts:
        answer = http.post("/v1/completions", json={"prompt": prompt})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "prompt"
    assert http.get("/health").status_code == 200


def test_model_names(http: httpx.Client) -> None:
    """B82."""
    done = {"encode": "a", "finish": "stop"}
    for name in ("default", "scripted", "tiny-random", None):
        answer = complete(http, done, model=name)
        assert answer.json()["model"] == "scripted"
    wrong = complete(http, done, model="gpt-4")
    assert wrong.status_code == 404
    assert wrong.json()["error"]["code"] == "model_not_found"
    assert "scripted" in wrong.json()["error"]["message"]
    assert [model["id"] for model in http.get("/v1/models").json()["data"]] == ["scripted"]
    assert http.get("/v1/models/default").json()["id"] == "scripted"
    assert http.get("/v1/models/gpt-4").status_code == 404


def test_framework_errors_have_the_same_format(http: httpx.Client) -> None:
    for answer, status in ((http.get("/v2"), 404), (http.get("/v1/completions"), 405)):
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_a_body_that_is_too_large(server: ServerUnderTest, http: httpx.Client) -> None:
    answer = http.post("/v1/completions", content=b" " * (17 << 20))
    assert answer.status_code == 413
    assert http.get("/health").status_code == 200


def test_echo(http: httpx.Client) -> None:
    prompt = script({"encode": "a"}, {"encode": "b", "finish": "stop"})
    whole = http.post("/v1/completions", json={"prompt": prompt, "echo": True}).json()
    assert whole["choices"][0]["text"] == prompt + "ab"
    streamed = events(http.post("/v1/completions", json={"prompt": prompt, "echo": True, "stream": True}))
    assert [event["choices"][0]["text"] for event in streamed[:-1]] == [prompt + "a", "b"]

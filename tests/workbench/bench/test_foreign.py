"""``specwb bench --url``: endpoints that are none of ours, with their own manners and faults."""

from __future__ import annotations

import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.workbench.bench.foreign_endpoint import TOKENS, ForeignEndpoint
from workbench.cli import main
from workbench.exit_codes import ExitCode


class QuietPages(SimpleHTTPRequestHandler):
    """A web server."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


def bench(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> tuple[dict[str, Any], str]:
    """Report and narration."""
    assert main(["bench", *words, "--clients", "1", "--json", "-"]) == code
    out = capsys.readouterr()
    return json.loads(out.out) if out.out else {}, out.err


def test_tokens_are_those_of_usage_and_what_needs_a_bus_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    """B84: two tokens a chunk, counted by nobody but usage."""
    with ForeignEndpoint() as endpoint:
        report, _ = bench(capsys, "--url", endpoint.url, "--requests", "3", code=ExitCode.OK)
        assert {body["model"] for body in endpoint.bodies} == {"other"}
    (result,) = report["results"]
    assert result["total_output_tokens"] == 3 * TOKENS
    assert (result["accept_length"], result["engine_steps"]) == (None, None)
    assert report["environment"] is None
    assert report["endpoint"]["model_id"] == "other"


def test_an_endpoint_that_refuses_what_it_does_not_know_gets_only_openais_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ForeignEndpoint(strict=True) as endpoint:
        report, said = bench(capsys, "--url", endpoint.url, "--requests", "2", "--random", "8,8", code=ExitCode.OK)
        assert not {"return_token_ids", "ignore_eos"} & set(endpoint.bodies[-1])
    assert report["endpoint"]["speaks_extensions"] is False
    assert report["results"][0]["completed"] == 2
    assert "refuses fields that are not OpenAI's" in said


def test_without_token_counts_nothing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """B84: chunks are not tokens, so there is no guess."""
    with ForeignEndpoint(usage=False) as endpoint:
        _, said = bench(capsys, "--url", endpoint.url, code=ExitCode.UNREACHABLE)
    assert "chunks are not tokens" in said


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ((429, "queue_full"), "429 queue_full"),
        ((503, "engine_restarting"), "503 engine_restarting"),
        ("cut", "connection lost"),
        ("event", "error event engine_error"),
    ],
)
def test_failures_are_counted_by_their_reason(
    fault: tuple[int, str] | str,
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every second request fails; the trial request does not count."""
    with ForeignEndpoint(fault=lambda number: fault if number % 2 == 0 else None) as endpoint:
        report, said = bench(capsys, "--url", endpoint.url, "--requests", "6", code=ExitCode.FALSE)
    (result,) = report["results"]
    assert (result["completed"], result["failed"], result["errors"]) == (3, 3, {reason: 3})
    assert result["total_output_tokens"] == 3 * TOKENS
    assert f"3 × {reason}" in said


def test_a_stream_that_falls_silent_is_not_waited_for_for_ever(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.bench.http_connection.SILENCE_S", 2.0)
    with ForeignEndpoint(fault=lambda number: "silent" if number == 2 else None) as endpoint:
        report, _ = bench(capsys, "--url", endpoint.url, "--requests", "2", code=ExitCode.FALSE)
    assert report["results"][0]["errors"] == {"silent server": 1}


def test_an_endpoint_that_refuses_everything_ends_the_run_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    with ForeignEndpoint(fault=lambda number: (503, "loading")) as endpoint:
        _, said = bench(capsys, "--url", endpoint.url, code=ExitCode.REFUSED)
    assert "the trial request" in said
    assert "503 loading" in said


def test_a_port_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with ForeignEndpoint() as endpoint:
        url = endpoint.url
    _, said = bench(capsys, "--url", url, "--model", "x", code=ExitCode.UNREACHABLE)
    assert "no connection" in said


def test_what_is_no_endpoint_at_all_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A web server answers with a page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), QuietPages) as pages:
        threading.Thread(target=pages.serve_forever).start()
        _, said = bench(capsys, "--url", f"http://127.0.0.1:{pages.server_port}/v1", code=ExitCode.REFUSED)
        pages.shutdown()
    assert "does not say which model it serves (404: <!DOCTYPE" in said
    assert len(said.strip().splitlines()) == 1


def test_one_of_several_models_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with ForeignEndpoint(models=("a", "b")) as endpoint:
        _, said = bench(capsys, "--url", endpoint.url, code=ExitCode.USAGE)
        assert "a, b; give --model" in said
        report, _ = bench(capsys, "--url", endpoint.url, "--model", "b", "--requests", "1", code=ExitCode.OK)
    assert report["endpoint"]["model_id"] == "b"


def test_the_key_of_the_environment_goes_to_a_foreign_endpoint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-1")
    with ForeignEndpoint() as endpoint:
        bench(capsys, "--url", endpoint.url, "--requests", "1", code=ExitCode.OK)
        assert set(endpoint.keys) == {"Bearer k-1"}

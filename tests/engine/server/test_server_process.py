"""How the server process starts, refuses to start, and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from engine.server.exit_status import ExitStatus
from probes.process import is_alive
from tests.engine.server.server_under_test import ServerUnderTest, until

HELD = json.dumps([{"encode": "a"}, {"await_abort": True}])


def test_exit_codes_are_a_contract() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {"OK": 0, "FAILED": 1, "USAGE": 2, "INTERRUPTED": 130}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_everything_in_order(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A stream in flight gets one error event; the engine, the record and the sockets are gone."""
    with ServerUnderTest(tmp_path, [], drain_s=0.2) as server:
        server.wait_ready()
        engine = server.engine_pid()
        with (
            ThreadPoolExecutor(1) as pool,
            server.client() as http,
            http.stream("POST", "/v1/completions", json={"prompt": HELD, "stream": True}) as streamed,
        ):
            lines = streamed.iter_lines()
            assert '"a"' in next(lines)
            rest = pool.submit(lambda: [line for line in lines if line])
            assert server.stop(number) == code
            said = [json.loads(line.removeprefix("data: ")) for line in rest.result()]
            assert [event["error"]["code"] for event in said] == ["server_stopping"]
        assert not is_alive(engine, None)
        assert list((tmp_path / "run" / "specwb").iterdir()) == []


def test_it_says_what_it_loads(tmp_path: Path) -> None:
    """At the terminal and in /health, before it is ready; never only a blank screen."""
    with ServerUnderTest(tmp_path, ["--start", "hang"]) as server:
        until("the terminal is told", lambda: "specwb: loading the slow part\n" in server.log.read_text())
        assert server.log.read_text().startswith("specwb: starting engine 't' with tiny-random; Ctrl-C ends it\n")
        with server.client() as http:
            health = http.get("/health")
        assert (health.status_code, health.json()["detail"]) == (503, "loading the slow part")
        assert server.stop() == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, ["--deaf"], stop_s=600.0) as server:
        server.wait_ready()
        engine = server.engine_pid()
        server.process.send_signal(signal.SIGINT)
        until("it says that it stops", lambda: "once more" in server.log.read_text())
        assert server.stop(signal.SIGINT) == 130
        until("the engine is gone", lambda: not is_alive(engine, None))


def test_an_engine_that_does_not_leave_is_killed(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, ["--deaf"], stop_s=0.2) as server:
        server.wait_ready()
        engine = server.engine_pid()
        assert server.stop() == 0
        assert "did not leave within 0.2 s" in server.log.read_text()
        assert not is_alive(engine, None)


def test_a_client_that_never_reads_holds_nobody_up(tmp_path: Path) -> None:
    """Its buffers fill, others are served meanwhile, and the server still ends."""
    flood = json.dumps([{"encode": "abcdefgh" * 16, "times": 8000}, {"await_abort": True}])
    body = json.dumps({"prompt": flood, "stream": True, "return_token_ids": True}).encode()
    with ServerUnderTest(tmp_path, [], drain_s=0.2) as server, server.client() as http:
        server.wait_ready()
        port = httpx.URL(server.url).port or 0
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.connect(("127.0.0.1", port))
            stalled.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n")
            stalled.sendall(b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
            assert stalled.recv(12) == b"HTTP/1.1 200"
            done = {"prompt": json.dumps([{"encode": "b", "finish": "stop"}])}
            assert http.post("/v1/completions", json=done).json()["choices"][0]["text"] == "b"
            assert server.stop() == 0


def test_a_killed_server_takes_its_engine_along(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, []) as server:
        server.wait_ready()
        engine = server.engine_pid()
        server.process.kill()
        until("the engine is gone", lambda: not is_alive(engine, None))


def test_not_ready_while_loading(tmp_path: Path) -> None:
    """B80: live at once, healthy only when ready; requests meanwhile get a 503 and are not held. It can be stopped."""
    with ServerUnderTest(tmp_path, ["--start", "hang"]) as server, server.client() as http:
        assert http.get("/live").status_code == 200
        health = http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "loading")
        answer = http.post("/v1/completions", json={"prompt": "x"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_loading")
        assert int(answer.headers["retry-after"]) > 0
        assert http.get("/v1/models").status_code == 503
        assert server.record["state"] == "starting"
        engine = server.engine_pid()
        assert server.stop() == 0
        assert not is_alive(engine, None)


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with ServerUnderTest(tmp_path, [], port=port) as server:
            assert server.wait() == ExitStatus.USAGE
            said = server.log.read_text()
            assert str(port) in said
            assert "--port" in said
            assert list((tmp_path / "run" / "specwb").iterdir()) == []


def test_a_name_in_use(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, []) as first:
        boot = first.wait_ready()["boot_id"]
        with ServerUnderTest(tmp_path, []) as second:
            assert second.wait() == ExitStatus.USAGE
            assert "'t' is taken" in second.log.read_text()
        assert first.record["boot_id"] == boot
        with first.client() as http:
            assert http.get("/health").status_code == 200


def test_an_engine_that_cannot_start_is_given_up(tmp_path: Path) -> None:
    """Three deaths before ready, and the last words are passed on."""
    with ServerUnderTest(tmp_path, ["--start", "die"]) as server:
        assert server.wait() == ExitStatus.FAILED
        said = server.log.read_text()
        assert "died 3 times before it was ready, the last time by exit code 7" in said
        assert said.rstrip().endswith("cannot find its feet")
        assert not server.record_path.exists()


def test_a_fatal_start_is_not_repeated(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, ["--start", "fatal"]) as server:
        assert server.wait() == ExitStatus.FAILED
        said = server.log.read_text()
        assert "specwb: the head does not fit" in said
        assert "restarting" not in said


def test_a_fatal_end_that_a_restart_may_help_is_told_and_repeated(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, ["--start", "broken"]) as server:
        assert server.wait() == ExitStatus.FAILED
        said = server.log.read_text()
        assert "engine process ended (exit code 1: slots leaked); restarting it" in said
        assert "died 3 times before it was ready, the last time by exit code 1: slots leaked" in said


def test_an_unknown_model(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, ["--start", "hang"], engine={"model": "no-such-model"}) as server:
        assert server.wait() == ExitStatus.FAILED
        assert "no-such-model" in server.log.read_text()


@pytest.mark.parametrize("text", ["", "{", '{"server": {"port": "x"}}', '{"server": {"prot": 1}}'])
def test_bad_configurations(tmp_path: Path, text: str) -> None:
    from engine.server.__main__ import main

    path = tmp_path / "config.json"
    path.write_text(text)
    assert main(["--config-json", str(path)]) == ExitStatus.USAGE
    assert main(["--config-json", os.fspath(tmp_path / "none.json")]) == ExitStatus.USAGE


CTRL_C_WHILE_IMPORTING = """
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "engine.server.server_process":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.meta_path.insert(0, CtrlC())
sys.argv = ["engine.server", "--config-json", "nowhere.json"]
runpy.run_module("engine.server", run_name="__main__")
"""


def test_ctrl_c_before_anything_has_started_leaves_no_traceback() -> None:
    ended = subprocess.run([sys.executable, "-c", CTRL_C_WHILE_IMPORTING], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")

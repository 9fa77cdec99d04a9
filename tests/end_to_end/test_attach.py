"""serve, attach and the verbs together, on the real engine with a tiny model, in a real terminal emulator."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
PROGRAM = [sys.executable, "-m", "workbench"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """A runtime directory with a short path: a unix socket's path must be short."""
    path = tempfile.mkdtemp(prefix="wb")
    yield {**os.environ, "XDG_RUNTIME_DIR": path, "TERM": "xterm-256color"}
    shutil.rmtree(path)


def until(what: str, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.1)


def specwb(environment: dict[str, str], *arguments: str) -> str:
    """stdout of a verb that must succeed."""
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


@contextmanager
def serving(environment: dict[str, str], *options: str) -> Iterator[subprocess.Popen[bytes]]:
    program = [*PROGRAM, "serve", "--name", "real", "--model", "tiny-random", "--port", "0", *options]
    with subprocess.Popen(program, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as server:
        try:
            until("a ready engine", lambda: '"state":"ready"' in specwb(environment, "ls", "--json"))
            yield server
        finally:
            if server.poll() is None:
                server.terminate()
                server.wait(timeout=PATIENCE_S)


class Tmux:
    """One program in a tmux window of a fixed size."""

    def __init__(self, environment: dict[str, str], command: list[str], size: tuple[int, int]) -> None:
        self._environment = environment
        self._base = ["tmux", "-S", f"{environment['XDG_RUNTIME_DIR']}/tmux.sock", "-f", "/dev/null"]
        width, height = map(str, size)
        folder = environment["XDG_RUNTIME_DIR"]  # where the screen records to
        run = f"cd {folder}; PYTHONPATH={ROOT} {' '.join(command)}; echo ended with $?; cat"
        self._run("new-session", "-d", "-x", width, "-y", height, run)

    def _run(self, *arguments: str) -> str:
        return subprocess.run(
            [*self._base, *arguments], cwd=ROOT, env=self._environment, capture_output=True, text=True, check=True
        ).stdout

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def wait_for(self, text: str) -> str:
        """The first screen with the text, in time."""
        screen = ""

        def there() -> bool:
            nonlocal screen
            screen = self.screen()
            return text in screen or "ended with" in screen

        try:
            until(text, there)
            assert text in screen, f"it ended without {text!r}"
        except AssertionError as error:
            pytest.fail(f"{error}; the screen:\n{screen}")
        return screen

    def close(self) -> None:
        subprocess.run([*self._base, "kill-server"], capture_output=True, check=False)


@contextmanager
def requests_running(url: str, count: int) -> Iterator[None]:
    """So many streams at any time while the block runs: one that reaches its end is asked for again."""
    body = {"model": "default", "prompt": "hello", "max_tokens": 1500, "stream": True, "ignore_eos": True}
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(timeout=PATIENCE_S) as client:
            while not over.is_set():
                with client.stream("POST", f"{url}/v1/completions", json=body) as stream:
                    assert stream.status_code == 200
                    for _ in stream.iter_raw():
                        if over.is_set():
                            return

    with ThreadPoolExecutor(count) as pool:
        asking = [pool.submit(ask) for _ in range(count)]
        try:
            yield
        finally:
            over.set()
    for one in asking:
        one.result()


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
def test_watch_and_switch_a_real_engine(environment: dict[str, str], size: tuple[int, int]) -> None:
    """B107, B109, B110 on the real thing: steps are seen, speculation is switched, the terminal is given back."""
    with serving(environment, "threshold=3", "--dtype", "float32") as server:
        url = json.loads(specwb(environment, "ls", "--json"))["http_url"]
        tmux = Tmux(environment, [*PROGRAM, "attach", "real"], size)
        try:
            tmux.wait_for("IDLE")
            with requests_running(url, 1):
                tmux.wait_for(" SPEC   spec auto")
                tmux.press("s")
                tmux.wait_for("esc: leave it")
                tmux.press("3")
                tmux.wait_for("Change spec auto → off?")
                tmux.press("y")
                tmux.wait_for("spec auto → off took effect at step")
                tmux.wait_for("draft loaded, speculation off (spec=off)")
                assert specwb(environment, "get", "spec") == "off\n"
                specwb(environment, "set", "spec=on", "--why", "end to end")
                tmux.wait_for(" SPEC   spec on")  # the change's own row scrolls away within a few steps
                tmux.press("r")
                tmux.wait_for(" REC  0:0")
                tmux.press("2")
                tmux.press("f")
                tmux.wait_for("FROZEN")
                tmux.press("f")
                tmux.press("5")
                tmux.wait_for("(end to end)")  # the audit trail has the other client's change
                tmux.press("u")
                tmux.wait_for("Change spec on → off?")
                tmux.press("y")
                tmux.wait_for("spec on → off took effect at step")
                tmux.press("4")
                tmux.wait_for("KNOB: spec on → off")
            tmux.press("q")
            last = tmux.wait_for("ended with 0")
            assert "LIVE" not in last
            assert "specwb: recorded 0:" in last
            (recording,) = Path(environment["XDG_RUNTIME_DIR"]).glob("real-*.mcap")
            told = json.loads(specwb(environment, "recordings", "info", str(recording), "--json"))
            assert told["finished"] is True
        finally:
            tmux.close()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=PATIENCE_S) == 130
    assert specwb(environment, "ls") == ""

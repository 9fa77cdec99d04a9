"""README's session as a reader would type it, on the real engine; only the model is tiny, and the port a free one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, commands, page

README = page("README.md")
LINES = commands(README)
PATIENCE_S = 120.0
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.slow


def line_with(text: str) -> str:
    (found,) = (line for line in LINES if text in line)
    return found


def block_with(text: str) -> str:
    (found,) = (block for block in blocks(README, "python") if text in block)
    return found


def shell(line: str, environment: dict[str, str]) -> str:
    """stdout of a command line that must succeed, run by a shell as typed."""
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment active, and a runtime directory of our own, short because sockets' paths must be."""
    path = tempfile.mkdtemp(prefix="wb")
    yield {
        **os.environ,
        "XDG_RUNTIME_DIR": path,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def url(environment: dict[str, str]) -> Iterator[str]:
    """README's own `serve` line, running; where it serves."""
    line = line_with("specwb serve --name demo") + " --model tiny-random --threads 1 --port 0"
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {line}"], cwd=ROOT, env=environment, stderr=subprocess.PIPE
    ) as server:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                assert server.poll() is None, server.stderr.read().decode() if server.stderr else ""
                assert time.monotonic() < deadline, "the engine never came up"
                listed = shell("specwb ls --json", environment)
                if '"state":"ready"' in listed:
                    break
                time.sleep(0.1)
            yield json.loads(listed)["http_url"]
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE_S)


@contextmanager
def load(url: str, environment: dict[str, str]) -> Iterator[None]:
    """Something for `tail` to see: README's curl line, again and again."""
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            shell(line_with("curl").replace("http://127.0.0.1:8000", url), environment)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        enough.set()
        asking.join()


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


@needs_curl
def test_curl(url: str, environment: dict[str, str]) -> None:
    answer = json.loads(shell(line_with("curl").replace("http://127.0.0.1:8000", url), environment))
    assert answer["choices"][0]["message"]["content"]


def test_openai_client(url: str, environment: dict[str, str]) -> None:
    block = block_with("from openai").replace("http://127.0.0.1:8000", url)
    done = subprocess.run(
        [sys.executable, "-c", block], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@needs_curl
def test_watching(url: str, environment: dict[str, str]) -> None:
    assert "demo" in shell(line_with("specwb ls"), environment)
    assert "engine/core.py:" in shell(line_with("specwb which demo"), environment)
    with load(url, environment):
        text, objects = (shell(line, environment) for line in LINES if line.startswith("specwb tail"))
    assert len([line for line in text.splitlines() if "slots" in line]) == 5
    assert [json.loads(line)["type"] for line in objects.splitlines()].count("step") == 5


def test_switching(url: str, environment: dict[str, str]) -> None:
    assert "threshold" in shell(line_with("specwb get"), environment)
    said = [shell(line, environment) for line in LINES if line.startswith("specwb set")]
    assert len(said) == 5
    assert all("in force from step" in text for text in said)
    assert "spec: auto → off" in said[0]
    assert "draft_tokens: 16 → 4" in said[2]
    knobs = json.loads(shell("specwb get demo --json", environment))["knobs"]
    assert (knobs["spec"], knobs["topk"], knobs["steps"], knobs["draft_tokens"]) == ("auto", 4, 2, 16)
    assert knobs["threshold"] == 4


def test_from_python() -> None:
    block = re.sub(r'"smollm2-135m"', '"tiny-random"', block_with("from engine import"))
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"  # float32: the same text with speculation on and off

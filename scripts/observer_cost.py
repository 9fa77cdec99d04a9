"""What watching costs: throughput with a TUI, a recorder and a check attached, over throughput with nothing attached.

    .venv/bin/python scripts/observer_cost.py [--threads 1] [--pairs 7] [--json out.json]

With ``--threads 1`` the engine is pinned to one core; the server, the load and the observers share the other one. With
``--threads 2`` nothing is pinned. Each side of a pair serves the same requests, greedy and of a fixed length.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from probes.ci.openai_client import OpenAiClient
from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.ratio import LEAST_PAIRS, interleaved
from workbench.demo.prompts import load_prompts
from workbench.demo.served_engine import ServedEngine

SETTLE_S = 4.0
"""Until all observers follow the bus; as long a rest before a round with none."""
SPECWB = [sys.executable, "-m", "workbench"]


def pin(pid: int, cores: set[int]) -> None:
    """All threads of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def serve_all(client: OpenAiClient, clients: int, tokens: int) -> float:
    """Tokens a second of one round: every client asks one prompt."""
    prompts = [prompt.prompt for prompt in load_prompts()]
    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda i: client.chat(prompts[i % len(prompts)], tokens), range(clients)))
    return sum(len(answer.token_ids) for answer in answers) / (time.monotonic() - began)


@contextmanager
def running(command: list[str], *, terminal: bool = False) -> Iterator[None]:
    """A process beside us; with ``terminal`` on a pty of 120 x 40 whose output is read and thrown away."""
    if not terminal:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        ours, theirs = pty.openpty()
        os.set_blocking(ours, True)
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)

        def drain() -> None:
            try:
                while os.read(ours, 65536):
                    pass
            except OSError:
                pass

        threading.Thread(target=drain, daemon=True).start()
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def observers(record: EngineRecord, folder: Path, number: int) -> Iterator[None]:
    """A TUI, a recorder and a check on the engine."""
    with ExitStack() as stack:
        stack.enter_context(running([*SPECWB, "attach", record.name], terminal=True))
        stack.enter_context(running([*SPECWB, "record", record.name, "-o", str(folder / f"{number}.mcap")]))
        stack.enter_context(running([*SPECWB, "check", record.name, "--over", "1h", "--expect", "accept_length > 1"]))
        time.sleep(SETTLE_S)
        yield


def measure(options: argparse.Namespace) -> dict[str, object]:
    """Serve, compare, report."""
    pinned = options.threads == 1 and (os.cpu_count() or 1) > 1
    if pinned:
        os.sched_setaffinity(0, {1})
    arguments = ["--model", options.model, "--threads", str(options.threads), "--threshold", str(options.threshold)]
    with tempfile.TemporaryDirectory() as folder, ServedEngine("observer-cost", arguments) as engine:
        record = engine.wait_ready(lambda text: print(text, file=sys.stderr))
        with ControlClient(record) as control:
            engine_pid = control.hello().pid
        if pinned:
            pin(engine_pid, {0})
        assert record.http_url is not None
        client = OpenAiClient(record.http_url)
        numbers = iter(range(10_000))

        def nothing() -> float:
            time.sleep(SETTLE_S)
            return serve_all(client, options.clients, options.tokens)

        def watched() -> float:
            with observers(record, Path(folder), next(numbers)):
                return serve_all(client, options.clients, options.tokens)

        nothing()
        ratio = interleaved(watched, nothing, options.pairs)
    return {
        "threads": options.threads,
        "pinned": pinned,
        "clients": options.clients,
        "ratio": ratio.median,
        "low": ratio.low,
        "high": ratio.high,
        "pairs": options.pairs,
        "at_least_0.97": ratio.at_least(0.97),
    }


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--threshold", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=LEAST_PAIRS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(options)
    print(json.dumps(result))
    if options.json:
        options.json.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

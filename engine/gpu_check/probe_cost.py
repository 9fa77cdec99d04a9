"""What being watched costs at full load: all topics, a row a request and step, against nobody and no bus."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.event_sink import NoSink
from engine.gpu_check.engines import plain
from engine.gpu_check.served_run import random_prompts, serve
from engine.gpu_check.session import Session
from engine.gpu_check.sweep import expected_s
from engine.identity import hello_of
from engine.llm import LLM
from probes.bus import Bus
from probes.endpoints import Endpoints
from probes.ratio import interleaved


def run(session: Session) -> None:
    """Cell ``probe/CLIENTS``, at the largest load."""
    clients = session.sizes.clients[-1]
    session.cell(f"probe/{clients}", lambda: _cost(session, clients), expected_s(clients, 2 * session.sizes.pairs + 4))


def _cost(session: Session, clients: int) -> dict[str, Any]:
    """The rate watched over the rate unwatched, by pairs of runs, plain steps: the most events a second."""
    llm, sink = plain(session)
    prompts = random_prompts(clients, session.sizes.prompt, llm.core.shape.vocab_size)
    rates: dict[str, list[float]] = {"watched": [], "alone": []}
    with watched_bus(llm) as (bus, watcher):

        def rate(how: str) -> float:
            sink.target = bus if how == "watched" else NoSink()
            rates[how].append(serve(llm, sink, prompts, session.sizes.output)["rate"])
            return rates[how][-1]

        try:
            rate("alone")
            rate("watched")
            rates = {"watched": [], "alone": []}
            ratio = interleaved(lambda: rate("watched"), lambda: rate("alone"), session.sizes.pairs)
        finally:
            sink.keep()
        dropped = bus.dropped
        assert watcher.stdin is not None
        seen, _ = watcher.communicate(timeout=60)  # its input ends: it says what it saw
    return {"ratio": asdict(ratio), "rates": rates, "dropped": dropped, "seen": json.loads(seen)}


@contextmanager
def watched_bus(llm: LLM) -> Iterator[tuple[Bus, subprocess.Popen[str]]]:
    """A bus for the engine, and a process that follows all of it; both end with the block."""
    with tempfile.TemporaryDirectory(prefix="gc") as folder:
        bus = Bus(
            Endpoints.in_dir(Path(folder)),
            boot_id=llm.core.boot_id,
            name="gpu-check",
            hello=lambda: hello_of(llm.assembly, "gpu-check", None, bus.t()),
        )
        with bus:
            command = [sys.executable, "-m", "engine.gpu_check.watcher", folder]
            watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                assert watcher.stdout is not None
                if watcher.stdout.readline().strip() != "ready":
                    raise RuntimeError("the watcher could not join the bus; see stderr")
                yield bus, watcher
            finally:
                if watcher.poll() is None:
                    watcher.kill()
                watcher.wait()

"""Starts the real server process for a test, and ends it whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

DEADLINE_S = 60.0
SCRIPTED = [sys.executable, str(Path(__file__).with_name("scripted_engine.py"))]
ROOT = Path(__file__).parents[3]


def until(what: str, holds: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
    """Poll until ``holds`` gives something true; fails with ``what`` after a generous deadline."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        value = holds()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {deadline_s:g} s: {what}")


class ServerUnderTest:
    """``python -m engine.server`` with a runtime directory of its own."""

    def __init__(self, directory: Path, engine_args: list[str] | None = None, **server: Any) -> None:
        self.directory = directory
        self.runtime = directory / "run"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        engine: dict[str, Any] = server.pop("engine", {"model": "tiny-random", "draft_model": "auto"})
        if engine_args is not None:
            server["engine_command"] = [*SCRIPTED, *engine_args]
        self.name = server.setdefault("name", "t")
        server.setdefault("port", 0)
        config = directory / "config.json"
        config.write_text(json.dumps({"server": server, "engine": engine}))
        self.log = directory / "log.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "engine.server", "--config-json", str(config)],
                cwd=ROOT,
                env={
                    **os.environ,
                    "XDG_RUNTIME_DIR": str(self.runtime),
                    "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": str(ROOT),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def record_path(self) -> Path:
        return self.runtime / "specwb" / str(self.name) / "engine.json"

    @property
    def record(self) -> dict[str, Any]:
        """The discovery record; empty when there is none."""
        try:
            record: dict[str, Any] = json.loads(self.record_path.read_text())
        except FileNotFoundError:
            return {}
        return record

    @property
    def url(self) -> str:
        return str(until("the server writes its record", self._alive_record)["http_url"])

    def _alive_record(self) -> dict[str, Any]:
        assert self.process.poll() is None, self.log.read_text()
        return self.record

    def wait_ready(self, boot_is_not: str = "") -> dict[str, Any]:
        """Until it serves (by another boot than the given one); the record."""

        def ready() -> dict[str, Any] | None:
            record = self._alive_record()
            return record if record.get("state") == "ready" and record["boot_id"] != boot_is_not else None

        record: dict[str, Any] = until("the engine is ready", ready)
        return record

    def engine_pid(self) -> int:
        """The process id of the engine that runs now."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(until("the engine process is there", lambda: children.read_text().split())[0])

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=DEADLINE_S)

    def wait(self) -> int:
        """Until it has exited by itself; its exit code."""
        return self.process.wait(DEADLINE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, and its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def __enter__(self) -> ServerUnderTest:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

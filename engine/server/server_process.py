"""The life of the server process: claim the name, bind the port, start the engine, serve, end everything in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.models.checkpoint_error import CheckpointError
from engine.models.text_assets import load_text
from engine.server.app import build_app
from engine.server.engine_client import EngineClient
from engine.server.engine_state import EngineState
from engine.server.exit_status import ExitStatus
from engine.server.listener import WILDCARDS, ListenError, bind, http_server, local_url
from engine.server.prompt_encoder import PromptEncoder
from engine.server.pulse import follow_pulse
from engine.server.server_config import StartConfig, as_json
from engine.server.service import Service
from engine.server.supervisor import EngineFailed, Supervisor
from probes.discovery import START, NameClaim, claim_name, new_record, write_record
from probes.endpoints import Endpoints
from probes.errors import ProbeError

CUT_S = 2.0
"""Time that cut streams get to send their last event."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def narrate(line: str) -> None:
    """Say a line to the person at the terminal."""
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone, the server is not
        print(f"specwb: {line}", file=sys.stderr, flush=True)


async def serve(config: StartConfig) -> ExitStatus:
    """Run the server until a signal or until its engine cannot be kept running."""
    try:
        claim = claim_name(config.server.name)
    except ProbeError as error:
        narrate(str(error))
        return ExitStatus.USAGE
    with claim:
        try:
            return await ServerProcess(config, claim).run()
        except ListenError as error:
            narrate(str(error))
            return ExitStatus.USAGE


class ServerProcess:
    """One server under a claimed name."""

    def __init__(self, config: StartConfig, claim: NameClaim) -> None:
        """Bind the port and write the engine's configuration; nothing runs yet.

        Raises:
            ListenError: the port cannot be bound.
        """
        server = config.server
        self._config = config
        self._claim = claim
        self._listener = bind(server.host, server.port)
        self._url = local_url(self._listener)
        self._bus = Endpoints.in_dir(claim.directory)
        self._engine_config: Path = claim.directory / START
        self._engine_config.write_bytes(as_json(config.engine))
        self._engine_config.chmod(0o600)
        self._state = EngineState(server.name, frozen_s=server.frozen_s, stage_limit_s=server.stage_s)
        self._client = EngineClient(config.engine.max_running + config.engine.max_queue)
        self._service = Service(server, self._state, self._client, config.engine.model)
        self._supervisor = Supervisor(
            server,
            self._state,
            self._client,
            claim.directory,
            self._engine_config,
            self._bus,
            on_change=self._publish_state,
            narrate=narrate,
        )
        self._stop = asyncio.Event()
        self._signal: signal.Signals | None = None
        self._started_at = 0.0  # of the first record: restarts of the engine leave it

    async def run(self) -> ExitStatus:
        """Serve; returns what the process exits with."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        if self._config.server.host in WILDCARDS:
            narrate("warning: HTTP listens on every address of this machine, without authentication")
        narrate(f"starting engine {self._config.server.name!r} with {self._config.engine.model}; Ctrl-C ends it")
        http = http_server(build_app(self._service))
        serving = asyncio.create_task(http.serve([self._listener]))
        supervising = asyncio.create_task(self._supervisor.run())
        loading = asyncio.create_task(self._load_text())
        pulse = asyncio.create_task(follow_pulse(self._state, self._bus.events))
        stopping = asyncio.create_task(self._stop.wait())
        status = ExitStatus.OK
        try:
            problem = await _first_problem(stopping, {supervising, loading, serving, pulse})
            if problem is not None:
                narrate(str(problem))
                status = ExitStatus.FAILED
            elif self._signal is signal.SIGINT:
                status = ExitStatus.INTERRUPTED
            await self._wind_down(lambda: setattr(http, "should_exit", True), serving)
            await self._supervisor.stop()
            await asyncio.wait((supervising,))
        finally:
            self._supervisor.kill()
            for task in (serving, supervising, loading, pulse, stopping):
                task.cancel()
            await asyncio.gather(serving, supervising, loading, pulse, stopping, return_exceptions=True)
            self._supervisor.close()
            self._engine_config.unlink(missing_ok=True)
        if status != ExitStatus.FAILED:
            narrate(f"engine {self._config.server.name!r} has ended")
        return status

    async def _wind_down(self, close: Callable[[], None], serving: asyncio.Task[None]) -> None:
        """Accept nothing more, let requests finish for a while, then cut those that are left with an error."""
        close()
        await asyncio.wait((serving,), timeout=self._config.server.drain_s if self._client.in_flight else CUT_S)
        if not serving.done():
            self._client.fail_all(503, "server_stopping", "the server is shutting down")
            await asyncio.wait((serving,), timeout=CUT_S)

    async def _load_text(self) -> None:
        """The tokenizer, beside the engine's own start."""
        assets = await asyncio.to_thread(load_text, self._config.engine.model)
        self._service.loaded = PromptEncoder(assets.tokenizer, assets.chat_template)
        self._publish_state()

    def _publish_state(self) -> None:
        """Write the discovery record, and tell the person when requests are served (again)."""
        state = self._state
        phase = state.phase
        if phase == "stopping" or phase == "failed":
            return  # the record goes when the claim is released
        if phase == "ready" and self._service.loaded is None:
            phase = "starting"
        record = new_record(
            self._config.server.name,
            boot_id=state.boot_id,
            endpoints=self._bus,
            model=self._service.model_name if state.ready else self._config.engine.model,
            http_url=self._url,
            state=phase,
        )
        self._started_at = self._started_at or record.started_at
        write_record(msgspec.structs.replace(record, started_at=self._started_at))
        if phase == "ready":
            narrate(f"engine {state.name!r} serves {self._service.model_name} at {self._url}/v1 (boot {state.boot_id})")

    def _on_signal(self, number: signal.Signals) -> None:
        if self._signal is None:
            self._signal = number
            narrate(f"{number.name}: stopping; once more to kill at once")
            self._stop.set()
            return
        # Asked twice: whoever asks wants the terminal back now.
        self._supervisor.kill()
        self._engine_config.unlink(missing_ok=True)
        self._claim.release()
        os._exit(128 + number)


async def _first_problem(stopping: asyncio.Task[bool], parts: set[asyncio.Task[None]]) -> Exception | None:
    """Wait for a signal, or for the first part that fails; the failure, if people should read it."""
    waiting = set(parts)
    while not stopping.done():
        done, _ = await asyncio.wait((stopping, *waiting), return_when=asyncio.FIRST_COMPLETED)
        for task in waiting & done:
            waiting.discard(task)
            error = task.exception()
            if isinstance(error, EngineFailed | CheckpointError):
                return error
            if error is not None:
                raise error
    return None

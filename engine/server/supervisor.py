"""Keeps an engine process running: boots it, watches it, restarts it under a new boot id, ends it in order."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

import zmq

from engine.boot import Boot
from engine.ipc import Failed, Fatal, FromEngine, Loading, Output, Ready, Shutdown
from engine.server.engine_client import EngineClient
from engine.server.engine_link import EngineLink
from engine.server.engine_process import EngineChild
from engine.server.engine_state import EngineState, Phase
from engine.server.server_config import ServerConfig
from probes.endpoints import Endpoints

MAX_DEATHS = 3
"""Deaths in a row without ever becoming ready, after which a restart would only loop."""
BACKOFF_S = (0.0, 0.0, 0.5, 2.0)
"""Pause before a restart, by the number of quick deaths in a row; the last one repeats."""
SETTLED_S = 30.0
"""An engine that dies after being ready for less than this died quickly."""
LAST_WORDS_S = 0.1
"""Time for messages of a process that has just exited to come through the pipe."""


class EngineFailed(Exception):
    """The engine cannot be kept running; the message is for people."""


class Supervisor:
    """Owns the engine process of one server."""

    def __init__(
        self,
        config: ServerConfig,
        state: EngineState,
        client: EngineClient,
        directory: Path,
        engine_config: Path,
        bus: Endpoints,
        on_change: Callable[[], None],
        narrate: Callable[[str], None],
    ) -> None:
        """Nothing starts before ``run``.

        Args:
            directory: where each boot's sockets go.
            engine_config: the file with the engine's start options.
            bus: what every boot binds.
            on_change: called after each change of the state's phase.
            narrate: says a line to the person at the terminal.
        """
        self._config = config
        self._state = state
        self._client = client
        self._directory = directory
        self._engine_config = engine_config
        self._bus = bus
        self._on_change = on_change
        self._narrate = narrate
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._process: EngineChild | None = None
        self._link: EngineLink | None = None
        self._fatal: Fatal | None = None
        self._ready_at = 0.0  # loop time of the newest Ready
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Keep an engine running until ``stop``.

        Raises:
            EngineFailed: it said that a restart cannot help, or it died too often before it was ready.
        """
        quick = 0  # quick deaths in a row
        unready = 0  # deaths in a row without ever becoming ready
        while not self._stopping.is_set():
            ending, ready_s = await self._one_boot()
            if self._stopping.is_set():
                return
            ending = self._in_its_own_words(ending)
            unready = unready + 1 if ready_s is None else 0
            quick = quick + 1 if ready_s is None or ready_s < SETTLED_S else 0
            if unready >= MAX_DEATHS:
                self._enter("failed", f"the engine process died {unready} times before it was ready")
                raise EngineFailed(
                    f"{self._state.detail}, the last time by {ending}; it last said:\n{self._last_words}"
                )
            self._state.restarts += 1
            self._enter("restarting", f"the engine process ended ({ending}) and is being restarted")
            self._narrate(f"engine process ended ({ending}); restarting it")
            pause = BACKOFF_S[min(quick, len(BACKOFF_S) - 1)]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def stop(self) -> None:
        """Ask the engine to leave, kill it when it does not in time. ``run`` returns after this."""
        loading = self._state.phase != "ready"
        self._stopping.set()
        self._enter("stopping", "the server is shutting down")
        process, link = self._process, self._link
        if process is None or link is None:
            return
        if loading:
            process.kill()  # nothing to finish, and nobody reads messages there yet
        link.send(Shutdown())
        deadline = asyncio.get_running_loop().call_later(self._config.stop_s, self._kill_slow, process)
        try:
            await process.wait()
        finally:
            deadline.cancel()

    def kill(self) -> None:
        """End the engine process at once."""
        self._stopping.set()
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Give the sockets back, after ``run`` has returned."""
        self._context.destroy(linger=0)

    async def _one_boot(self) -> tuple[str, float | None]:
        """From start to death: how it ended, and for how many seconds it had been ready (None: never)."""
        boot_id = secrets.token_hex(6)
        self._state.boot_id = boot_id
        self._on_change()
        link = EngineLink(self._context, self._directory, boot_id)
        boot = Boot(
            name=self._config.name,
            boot_id=boot_id,
            to_engine=link.to_engine,
            from_engine=link.from_engine,
            bus=self._bus,
        )
        loop = asyncio.get_running_loop()
        try:
            self._process = await EngineChild.start(self._config.engine_command, self._engine_config, boot)
            self._link = link
            link.listen(self._receive)
            if self._stopping.is_set():  # told to stop while it was being started
                self._process.kill()
            ending = await self._process.wait()
            ready_s = loop.time() - self._ready_at if self._state.phase == "ready" else None
            await asyncio.sleep(LAST_WORDS_S)
        except OSError as error:
            raise EngineFailed(f"cannot start the engine process {self._config.engine_command}: {error}") from None
        finally:
            if self._process is not None:
                self._process.kill()
            self._link = None
            link.close()
            self._client.disconnect(
                503, "engine_restarting", "the engine process died; the request was lost, send it again"
            )
        return ending, ready_s

    @property
    def _last_words(self) -> str:
        return self._process.last_words if self._process is not None else ""

    def _in_its_own_words(self, ending: str) -> str:
        """How the process ended, with what it said about it.

        Raises:
            EngineFailed: it said that a restart cannot help.
        """
        fatal, self._fatal = self._fatal, None
        if fatal is None:
            return ending
        if not fatal.retry:
            self._enter("failed", fatal.message)
            raise EngineFailed(fatal.message)
        return f"{ending}: {fatal.message}"

    def _receive(self, message: FromEngine) -> None:
        match message:
            case Output() | Failed():
                self._client.handle(message)
            case Loading():
                if self._state.phase in ("starting", "restarting"):
                    self._state.detail = message.message
                    self._narrate(message.message)  # a model loads for long enough to wonder
            case Ready():
                self._now_ready(message)
            case Fatal():
                self._fatal = message

    def _now_ready(self, ready: Ready) -> None:
        link = self._link
        if link is None or self._stopping.is_set():
            return
        self._ready_at = asyncio.get_running_loop().time()
        self._state.now_ready(ready)
        self._client.connect(link.send)
        self._on_change()

    def _enter(self, phase: Phase, detail: str) -> None:
        self._state.move(phase, detail)
        self._on_change()

    def _kill_slow(self, process: EngineChild) -> None:
        self._narrate(f"engine process did not leave within {self._config.stop_s:g} s; killing it")
        process.kill()

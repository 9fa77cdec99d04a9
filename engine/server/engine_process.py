"""One run of the engine process: start it, pass on what it says, end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from engine.boot import Boot

TAIL_LINES = 12
"""Last lines of the engine's narration that are kept for the message of its death."""
LINE_BYTES = 1 << 16


def quiet_threads(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for the engine: threads of its arithmetic sleep while they wait, unless somebody chose otherwise.

    By default OpenMP's threads spin at the end of every matrix product. With anything else on the same cores (this
    server, a screen, a client) each spin costs a time slice: steps of 1.2 s were measured where sleeping took 0.06 s.
    """
    return {"OMP_WAIT_POLICY": "passive", **environment}


class EngineChild:
    """A child process in a session of its own, so that Ctrl-C in the terminal reaches only the server.

    Its standard input is a pipe that nothing is ever written to: when the server dies, however it dies, the engine
    reads end-of-file there and leaves. What it prints goes to the server's stderr.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._relay = asyncio.create_task(self._relay_output())

    @classmethod
    async def start(cls, command: Sequence[str], config: Path, boot: Boot) -> EngineChild:
        """Start a boot.

        Raises:
            OSError: the command cannot be run.
        """
        endpoints = msgspec.json.encode(boot).decode()
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                "--config",
                str(config),
                "--endpoints",
                endpoints,
                env=quiet_threads(os.environ),
                stdin=PIPE,
                stdout=PIPE,
                stderr=STDOUT,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The end of what it printed."""
        return "\n".join(self._tail)

    async def wait(self) -> str:
        """Until it has exited and its output is read; how it ended, in words."""
        code = await self._process.wait()
        # A grandchild that keeps the pipe open must not keep us.
        await asyncio.wait((self._relay,), timeout=1.0)
        self._relay.cancel()
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}"

    def kill(self) -> None:
        """SIGKILL to it and its children; harmless when it has exited."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _relay_output(self) -> None:
        output = self._process.stdout
        assert output is not None
        while True:
            try:
                line = await output.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                self._say(end.partial)
                return
            except asyncio.LimitOverrunError as long:
                line = await output.readexactly(long.consumed or LINE_BYTES)
            self._say(line)

    def _say(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\n")
        if text:
            self._tail.append(text)
            with contextlib.suppress(OSError, ValueError):  # our own stderr may be gone
                print(text, file=sys.stderr, flush=True)

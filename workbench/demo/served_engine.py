"""An engine of the demo's own: ``specwb serve`` in another process, from its start to its end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from probes.ci.openai_client import OpenAiClient, RequestFailed
from probes.discovery import EngineRecord, list_records
from workbench.console import fail
from workbench.exit_codes import ExitCode
from workbench.own_command import own_command

START_S = 600.0
"""Longest wait for a model to load."""
STOP_S = 15.0
"""The server ends its engine in less than this, or is ended itself."""
LAST_LINES = 15
_PR_SET_PDEATHSIG = 1


class ServedEngine:
    """Started on entry, ended on exit unless ``keep`` says otherwise."""

    def __init__(self, name: str, serve_options: Sequence[str], *, keep: bool = False) -> None:
        """``serve_options``: words for ``specwb serve``, without name and port."""
        self.name = name
        self.keep = keep
        self._options = serve_options
        self._arguments = ["serve", "--name", name, "--port", "0", *serve_options]

    @property
    def command(self) -> str:
        """As one would type it."""
        return own_command(*self._arguments)

    @property
    def how_to_set(self) -> str:
        """Command that a knob's new value is put behind: on this engine if it goes on, else on one like it."""
        return own_command("set", self.name) if self.keep else own_command("serve", *self._options)

    process: subprocess.Popen[bytes]
    log: Path
    """What the server and its engine have said on stderr; deleted at the end, unless the engine goes on."""

    def __enter__(self) -> ServedEngine:
        fd, path = tempfile.mkstemp(prefix="specwb-demo-", suffix=".log")
        self.log = Path(path)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workbench", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=fd,
                stderr=fd,
                # Of its own session: Ctrl-C reaches the demo alone, which then ends the engine in order.
                start_new_session=True,
                preexec_fn=None if self.keep else _end_with_parent,  # noqa: PLW1509 (no threads are running yet)
            )
        finally:
            os.close(fd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.keep and kind is None:
            return
        self.stop()
        self.log.unlink(missing_ok=True)

    def wait_ready(self, say: Callable[[str], None]) -> EngineRecord:
        """Until it serves; what it says about its loading is passed on.

        Raises:
            CommandError: it ended, or took too long.
        """
        began = time.monotonic()
        said = ""
        while time.monotonic() - began < START_S:
            self.check_alive(ExitCode.NO_ENGINE)
            record = next((found for found in list_records(clean=False) if found.name == self.name), None)
            if record is not None and record.http_url is not None:
                detail = said
                with suppress(RequestFailed):  # the port is bound before anyone listens on it
                    detail = str(OpenAiClient(record.http_url, timeout=5.0).health().get("detail", ""))
                if detail != said:
                    said = detail
                    say(f"{time.monotonic() - began:5.1f}s  {detail}")
                if record.state == "ready":
                    return record
            time.sleep(0.1)
        fail(ExitCode.UNREACHABLE, f"the engine was not ready within {START_S:g} s")

    def check_alive(self, code: ExitCode) -> None:
        """Make sure that the server runs.

        Raises:
            CommandError: it does not; with ``code``.
        """
        status = self.process.poll()
        if status is not None:
            fail(code, f"the engine ended with exit code {status}")

    def last_lines(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join(f"  | {line}" for line in lines) or "  | nothing"

    def stop(self) -> None:
        """End it in order; at once if that takes too long, or if Ctrl-C is pressed meanwhile. Harmless twice."""
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            # Its session holds the server and its engine process, nothing of ours.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _end_with_parent() -> None:
    """In the new process: ask the kernel for a SIGTERM when the demo dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

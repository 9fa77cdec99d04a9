"""Runs the attached screen on this terminal and says how it ended."""

from __future__ import annotations

import asyncio

from probes.clock import SystemClock
from probes.discovery import EngineRecord
from workbench.console import say
from workbench.exit_codes import ExitCode
from workbench.recording.recorder import Recorder
from workbench.tui.app import AttachApp
from workbench.tui.bus_feed import BusFeed
from workbench.tui.bus_steering import BusSteering
from workbench.tui.collector import settle_heap
from workbench.tui.terminal_guard import TerminalGuard


class ScreenCrash(Exception):
    """The screen ended with an exception, its ``__cause__``; the terminal is restored."""


def run_screen(app: AttachApp) -> int:
    """Run until the person quits or a signal ends it; the exit code.

    Raises:
        ScreenCrash: a bug ended it.
    """

    app.when_ready = settle_heap
    loop: asyncio.AbstractEventLoop | None = None

    def leave(code: int) -> None:
        if loop is not None:
            loop.call_soon_threadsafe(app.exit)

    async def run() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        await app.run_async()

    with TerminalGuard(leave) as guard:
        asyncio.run(run())
    if app.crash is not None:
        raise ScreenCrash(str(app.crash)) from app.crash
    return guard.signalled or 0


def attach(record: EngineRecord) -> int:
    """The screen of a live engine. Afterwards it says where what was recorded is; 1 when some of that is missing."""
    app = AttachApp(
        record.name,
        BusFeed(record),
        SystemClock(),
        BusSteering(record),
        make_recording=lambda path: Recorder(record, path),
    )
    try:
        code = run_screen(app)
    finally:
        for line in app.recording.report():
            say(line)
    return code or (ExitCode.FALSE if app.recording.has_failed else ExitCode.OK)

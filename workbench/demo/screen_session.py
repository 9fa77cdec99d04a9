"""The demo on a screen: a thread drives the engine, the person watches, and a recorder keeps it all."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from probes.discovery import EngineRecord
from workbench.console import Command, fail
from workbench.demo.demo_app import DemoApp, ScreenNarrator
from workbench.demo.demonstration import MODES, Stopped
from workbench.demo.outcome import Outcome
from workbench.demo.served_engine import ServedEngine
from workbench.demo.session import Say, demonstration_on, ready_engine
from workbench.exit_codes import ExitCode
from workbench.own_command import own_command
from workbench.recording.file_names import free_path
from workbench.recording.recorder import Recorder
from workbench.recording.recording_error import RecordingError
from workbench.tui.crash_report import describe, log_dir, write_report
from workbench.tui.record_key import ended_text
from workbench.tui.screen import ScreenCrash, run_screen

JOIN_S = 10.0
"""Longest wait for the demo's thread after the screen: it looks up several times a second."""


class Conductor:
    """Runs the demonstration beside the screen."""

    def __init__(self, engine: ServedEngine, record: EngineRecord, tokens: int, narrator: ScreenNarrator) -> None:
        self._engine = engine
        self._record = record
        self._tokens = tokens
        self._narrator = narrator
        self._stop = threading.Event()
        # A daemon: a request that hangs must not keep the program.
        self._thread = threading.Thread(target=self._run, name="demo", daemon=True)
        self.outcome: Outcome | None = None
        """What has been found out so far; None until the engine has answered."""
        self.failure: Exception | None = None
        """What ended the demonstration, other than the person."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the load, and wait for the thread."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped
        self._engine.check_alive(ExitCode.UNREACHABLE)

    def _run(self) -> None:
        try:
            with demonstration_on(self._record, self._tokens, self._narrator, self._check) as demonstration:
                self.outcome = demonstration.outcome
                self.outcome.how_to_set = self._engine.how_to_set
                demonstration.run()
        except Stopped:
            pass
        except Exception as error:
            self.failure = error
            self._narrator.tell(f"it cannot go on: {error}; q quits", "bad")
        else:
            self._narrator.tell("the ramp has ended; q quits and prints the comparison", "good")


def demonstrate_on_screen(
    serve_options: Sequence[str], tokens: int, say: Say, *, keep: bool = False
) -> tuple[Outcome | None, int]:
    """As ``demonstrate``, with the screen of the engine over it; what is to be read is said after the screen.

    Returns:
        what was found out (None: nothing yet), and the exit code of the screen: 0, or 128 + a signal's number.

    Raises:
        CommandError: the engine could not start, could not go on, or the screen ended with a bug.
    """
    with ready_engine(serve_options, say, keep=keep) as (engine, record):
        recorder = start_recorder(record, say)
        narrator = ScreenNarrator(recorder.bookmark if recorder is not None else lambda text: None)
        conductor = Conductor(engine, record, tokens, narrator)
        app = DemoApp(record, narrator, conductor.start)
        try:
            code = run_screen(app)
        except ScreenCrash as crash:
            cause = crash.__cause__ or crash
            fail(ExitCode.INTERNAL, describe(cause, write_report(cause)))
        finally:
            conductor.stop()
            status = recorder.stop() if recorder is not None else None
        for line in narrator.notes:
            say(line)
        for line in app.recording.report():
            say(line)
        if status is not None:
            say(ended_text(status))
            if not status.error:
                say("see it again:")
                say(Command(f"  {own_command('replay', str(status.path))}"))
        if conductor.failure is not None:
            raise conductor.failure
    outcome = conductor.outcome
    if outcome is not None:
        outcome.missing = [name for name in MODES if name not in {mode.name for mode in outcome.modes}]
    return outcome, code


def start_recorder(record: EngineRecord, say: Say) -> Recorder | None:
    """Record into the user's cache; a demo goes on without, and says so."""
    folder: Path = log_dir() / "recordings"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        recorder = Recorder(record, free_path("demo", folder, time.time()), note="specwb demo")
        recorder.start()
    except (OSError, RecordingError) as error:
        say(f"not recorded: {error}")
        return None
    return recorder

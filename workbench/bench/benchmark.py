"""One benchmark from its connections to its exit code: signals, the report file, and the knob set back at the end."""

from __future__ import annotations

import asyncio
import datetime
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import click
import msgspec

from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.events import HelloEvent
from workbench.bench.endpoint import Endpoint
from workbench.bench.outcome_text import outcome_lines
from workbench.bench.report import report
from workbench.bench.request_error import RequestError
from workbench.bench.session import Options, Outcome, Session
from workbench.bench.step_watch import StepWatch
from workbench.bench.workload import Workload
from workbench.borrowed_knobs import BorrowedKnobs
from workbench.console import columns_of, fail, print_json, print_line, say
from workbench.exit_codes import ExitCode
from workbench.live_line import LiveLine
from workbench.whole_file import write_whole

WHO = "specwb bench"
CONTROL_S = 30.0
"""Longest wait for the engine to answer a control request: it answers between steps."""


class Benchmark:
    """One benchmark from its connections to its exit code."""

    def __init__(
        self,
        endpoint: Endpoint,
        workload: Workload,
        options: Options,
        record: EngineRecord | None,
        json_path: str | None,
    ) -> None:
        """Nothing is connected before it is entered.

        Args:
            record: of the engine whose endpoint it is; None for a foreign one.
            json_path: where the report goes after every run; ``-`` is stdout, at the end.
        """
        self._endpoint, self._workload, self._options, self._record = endpoint, workload, options, record
        self._json_path = json_path
        self._date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._hello: HelloEvent | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Benchmark:
        with ExitStack() as stack:
            self._connect(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The knob is set back, and everything closed."""
        self._stack.close()

    def _connect(self, stack: ExitStack) -> None:
        options, record = self._options, self._record
        watch = knob = None
        if record is not None:
            control = stack.enter_context(ControlClient(record, timeout=CONTROL_S, who=WHO))
            watch = stack.enter_context(StepWatch(record, control, WHO))
            self._hello = watch.hello
            if options.modes:
                if watch.hello.draft is None and set(options.modes) - {"off"}:
                    fail(ExitCode.USAGE, f"{record.name} has no draft model, so there are no modes to compare")
                knob = stack.enter_context(BorrowedKnobs(control, watch.hello.knobs, WHO))
        line = LiveLine(sys.stderr)
        self._session = Session(
            self._endpoint,
            self._workload,
            options,
            say,
            watch=watch,
            knob=knob,
            line=line if line.is_seen else None,
            keep=None if self._json_path in (None, "-") else self._write,
        )

    def run(self) -> int:
        """Measure, print, and the exit code."""
        asyncio.run(self._measure())
        outcome = self._session.outcome
        self._print(outcome)
        if outcome.exit_code is not ExitCode.OK:
            return outcome.exit_code
        failed = any(answer.error is not None for _, run in outcome.runs for answer in run.answers)
        return ExitCode.FALSE if failed else ExitCode.OK

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        signals = {signal.SIGINT: ("Ctrl-C", ExitCode.INTERRUPTED), signal.SIGTERM: ("SIGTERM", ExitCode.TERMINATED)}
        for number, (why, code) in signals.items():
            loop.add_signal_handler(number, self._session.interrupt, why, code)
        try:
            if self._endpoint.model is None and self._record is None:
                await self._find_model()
            await self._session.run()
        finally:
            self._endpoint.close()
            for number in signals:
                loop.remove_signal_handler(number)

    async def _find_model(self) -> None:
        try:
            names = await self._endpoint.models()
        except RequestError as error:
            code = ExitCode.UNREACHABLE if error.status is None else ExitCode.REFUSED
            fail(code, f"{self._endpoint.url} does not say which model it serves ({error}); give --model if you know")
        if len(names) != 1:
            fail(ExitCode.USAGE, f"{self._endpoint.url} serves {len(names)} models: {', '.join(names)}; give --model")
        self._endpoint.model = names[0]

    def _report(self) -> dict[str, Any]:
        outcome = self._session.outcome
        return report(outcome, self._options, self._workload, self._endpoint, self._date, self._record, self._hello)

    def _write(self, outcome: Outcome) -> None:
        assert self._json_path is not None
        path = Path(self._json_path)
        try:
            write_whole(path, msgspec.json.format(msgspec.json.encode(self._report(), enc_hook=str)) + b"\n")
        except OSError as error:
            fail(ExitCode.FALSE, f"--json {path}: {error.strerror}")

    def _print(self, outcome: Outcome) -> None:
        stream = sys.stderr if self._json_path == "-" else sys.stdout
        for line in outcome_lines(outcome, self._options, columns_of(stream)):
            if stream is sys.stderr:
                click.echo(line, err=True)
            else:
                print_line(line)
        if self._json_path == "-":
            print_json(self._report())
        elif self._json_path is not None:
            self._write(outcome)

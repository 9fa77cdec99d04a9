"""A whole benchmark: try the endpoint out, then run after run; an interruption keeps what there is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from probes.errors import ProbeError
from probes.simulation import UNSAID, WORD, simulation_of
from workbench.bench.endpoint import Endpoint
from workbench.bench.load import Budget, Load
from workbench.bench.metrics import Run
from workbench.bench.plan import Level, Setting, requests_for, settings
from workbench.bench.request_error import RequestError
from workbench.bench.step_watch import StepWatch
from workbench.bench.workload import RandomWords, Workload
from workbench.borrowed_knobs import BorrowedKnobs
from workbench.console import CommandError, fail
from workbench.exit_codes import ExitCode
from workbench.live_line import LiveLine
from workbench.step_words import counted

CALIBRATION_WORDS = 16
REFRESH_S = 1.0
"""Between two looks at how far a run is."""


@dataclass
class Options:
    """What a person asked for."""

    levels: list[Level]
    modes: list[str]
    rounds: int
    requests: int | None
    duration: float | None
    seed: int


@dataclass
class Outcome:
    """All that was measured, in order."""

    runs: list[tuple[Setting, Run]] = field(default_factory=list)
    stopped_by: str = ""
    """Why it ended before its end; empty when it did not."""
    exit_code: ExitCode = ExitCode.OK
    simulation: str = ""
    """What is not real in the engine, in words; empty when all of it is, or where nobody says."""

    def of(self, level: Level, mode: str | None) -> list[Run]:
        """Runs of one setting, by round; a partial one only where there is no whole one."""
        found = [run for setting, run in self.runs if setting.level == level and setting.mode == mode]
        return [run for run in found if not run.is_partial] or found

    def whole(self, level: Level, mode: str | None) -> list[Run]:
        """Runs of one setting that were not interrupted, by round."""
        return [run for run in self.of(level, mode) if not run.is_partial]


class Session:
    """Runs a benchmark. ``outcome`` grows while it goes on."""

    def __init__(
        self,
        endpoint: Endpoint,
        workload: Workload,
        options: Options,
        say: Callable[[str], None],
        *,
        watch: StepWatch | None = None,
        knob: BorrowedKnobs | None = None,
        line: LiveLine | None = None,
        keep: Callable[[Outcome], None] | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            say: prints a line.
            watch, knob: of an engine whose bus can be reached; a foreign endpoint has none.
            line: shows how far a run is; None where nobody looks.
            keep: gets the outcome after every run.
        """
        self._endpoint = endpoint
        self._workload = workload
        self._options = options
        self._say = say
        self._watch = watch
        self._knob = knob
        self._line = line
        self._keep = keep
        self._running: asyncio.Task[None] | None = None
        self.outcome = Outcome(simulation=simulation_of(watch.hello) if watch is not None else "")

    def interrupt(self, why: str, code: ExitCode) -> None:
        """End the run that goes on, and all that would follow."""
        self.outcome.stopped_by, self.outcome.exit_code = why, code
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """Everything, in order.

        Raises:
            CommandError: the endpoint gives no answer that could be measured; nothing was.
        """
        try:
            await self._guarded(self._try_out())
            for setting in settings(self._options.levels, self._options.modes, self._options.rounds):
                if self.outcome.stopped_by:
                    break
                await self._one(setting)
        except CommandError as error:
            self._end_early(error.message, error.code)
        except ProbeError as error:
            self._end_early(str(error), ExitCode.UNREACHABLE)

    def _end_early(self, why: str, code: ExitCode) -> None:
        if not self.outcome.runs:
            fail(code, why)
        if not self.outcome.stopped_by:
            self.outcome.stopped_by, self.outcome.exit_code = why, code

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do work that an interruption may cancel; whether it came to its end."""
        self._running = running = asyncio.create_task(work)
        try:
            await running
        except asyncio.CancelledError:
            if not self.outcome.stopped_by:
                raise
            return False
        finally:
            self._running = None
        return True

    async def _try_out(self) -> None:
        try:
            if isinstance(self._workload, RandomWords):
                answer = await self._endpoint.try_out(self._workload.ask(0, words=CALIBRATION_WORDS))
                self._workload.fit(CALIBRATION_WORDS, answer.input_tokens)
            await self._endpoint.try_out(self._workload.ask(0))
        except RequestError as error:
            code = ExitCode.UNREACHABLE if error.status is None else ExitCode.REFUSED
            fail(code, f"the trial request to {self._endpoint.url} failed: {error}")
        if not self._endpoint.speaks_extensions:
            self._say(
                "the endpoint refuses fields that are not OpenAI's: a chunk's tokens are shared out by usage, and an "
                "answer of random words ends where the model ends it"
            )

    async def _one(self, setting: Setting) -> None:
        options, level = self._options, setting.level
        if self._knob is not None and setting.mode is not None:
            self._knob.set(spec=setting.mode)
        requests = options.requests
        if requests is None and options.duration is None:
            requests = requests_for(level, self._workload.size)
        load = Load(lambda index: self._endpoint.stream(self._workload.ask(index)))
        budget = Budget(requests, options.duration)
        if self._watch is not None:
            self._watch.begin()
        began, cpu = time.monotonic(), time.process_time()
        showing = asyncio.create_task(self._show(setting, load, requests)) if self._line is not None else None
        if level.clients is not None:
            is_whole = await self._guarded(load.closed(level.clients, budget))
        else:
            assert level.rate is not None
            is_whole = await self._guarded(load.open(level.rate, budget, options.seed))
        if showing is not None and self._line is not None:
            showing.cancel()
            self._line.clear()
        ended = max((answer.ended_at for answer in load.answers), default=time.monotonic())
        run = Run(
            duration=(ended if is_whole else time.monotonic()) - began,
            answers=load.answers,
            most_in_flight=load.most_in_flight,
            is_partial=not is_whole or load.gave_up,
            client_cpu_s=time.process_time() - cpu,
        )
        self.outcome.runs.append((setting, run))
        if not load.gave_up:  # else the engine is not asked either: it would be waited for in vain
            self._count_steps(run)
        self._say(self._told(setting, run))
        if self._keep is not None:
            self._keep(self.outcome)
        if load.gave_up or (run.answers and not run.completed and not self.outcome.stopped_by):
            many = f"{load.patience} requests in a row failed" if load.gave_up else "no request was answered"
            last = run.answers[-1].error
            code = ExitCode.UNREACHABLE if last is not None and last.status is None else ExitCode.FALSE
            fail(code, f"{many}, the last: {last}")

    def _count_steps(self, run: Run) -> None:
        if self._watch is None:
            return
        sums = self._watch.sums()
        run.steps, run.verified, run.correct_drafts = sums.steps, sums.verified, sums.correct_drafts
        run.emitted, run.notes = sums.emitted, sums.notes
        run.gpu, run.graph_hits, run.graph_misses = sums.gpu, sums.graph_hits, sums.graph_misses
        if sums.simulated:
            self.outcome.simulation = self.outcome.simulation or UNSAID
        ours = sum(answer.output_tokens for answer in run.answers)
        if not run.is_partial and not sums.notes and len(run.completed) == len(run.answers) and ours != run.emitted:
            run.notes.append(
                f"the engine emitted {run.emitted} tokens and {ours} of them came here: others use it too, and the "
                f"accept length is theirs as well (`specwb audit` tells more)"
            )

    async def _show(self, setting: Setting, load: Load, requests: int | None) -> None:
        assert self._line is not None
        began, of = time.monotonic(), f" of {requests}" if requests is not None else ""
        while True:
            await asyncio.sleep(REFRESH_S)
            self._line.show(
                f"{self._name(setting)}: {len(load.answers)}{of} answers, {load.in_flight} in flight, "
                f"{time.monotonic() - began:.0f} s"
            )

    def _name(self, setting: Setting) -> str:
        mode = f", spec={setting.mode}" if setting.mode is not None else ""
        rounds = f", round {setting.round + 1} of {self._options.rounds}" if self._options.rounds > 1 else ""
        return f"{setting.level.text}{mode}{rounds}"

    def _told(self, setting: Setting, run: Run) -> str:
        accept = f", accept length {run.accept_length:.2f}" if run.accept_length is not None else ""
        failed = len(run.answers) - len(run.completed)
        parts = [
            f"{self._name(setting)}: {run.output_throughput:.1f} tok/s{accept}, "
            f"{counted(len(run.completed), 'answer')} in {run.duration:.1f} s"
        ]
        if failed:
            parts.append(f", {failed} failed")
        if self.outcome.simulation:
            parts.append(f", {WORD}")
        if run.is_partial:
            parts.append(" (interrupted)")
        return "".join(parts) + "".join(f"\nnote: {note}" for note in run.notes)

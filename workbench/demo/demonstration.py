"""The demo itself: a reference, then the same ramp of clients with speculation off, on and by policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from probes.ci.client_ramp import ClientRamp, levels_through
from probes.ci.comparison import Tally, compare
from probes.ci.job_pool import JobPool
from probes.ci.near_ties import limit_for, rule_text
from probes.ci.openai_client import Answer, Transport
from probes.control import Applied, ControlClient
from probes.discovery import EngineRecord
from probes.errors import ProbeError
from probes.events import AlertEvent, DropEvent, KnobEvent, StepEvent
from probes.simulation import WORD, simulation_of
from probes.subscriber import Gap, Malformed, Received, Restart, Subscriber
from workbench.console import fail
from workbench.demo.narrator import Narrator
from workbench.demo.outcome import ModeOutcome, Outcome
from workbench.demo.progress_line import HEADER, ProgressLine
from workbench.demo.prompts import Prompt, load_prompts
from workbench.demo.sameness import difference_lines, sameness_text
from workbench.demo.step_sums import StepSums, StepTimer
from workbench.exit_codes import ExitCode

MODES = {
    "off": "never speculates",
    "on": "speculates in every decode step",
    "auto": "speculates at up to {threshold} decode requests a step",
}
WHO = "specwb demo"
"""Signs the demo's own knob changes."""
POLL_S = 0.2
CATCH_UP_S = 30.0
"""Longest wait for the events of steps that have already run."""

OnStep = Callable[[StepEvent, float], None]
"""(step, microseconds it took)"""


class Stopped(Exception):
    """The person has seen enough."""


class Demonstration:
    """Drives one running engine and watches it."""

    def __init__(
        self,
        record: EngineRecord,
        control: ControlClient,
        subscriber: Subscriber,
        transport: Transport,
        tokens: int,
        narrator: Narrator,
        check_alive: Callable[[], None],
        columns: int | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            control: signed with ``WHO``.
            subscriber: to steps, knob changes, alerts and drops.
            tokens: length of each answer.
            narrator: told what goes on.
            check_alive: called again and again; raises when the engine has ended, or ``Stopped``.
            columns: of the terminal that the lines go to; None where there is none.
        """
        hello = subscriber.hello
        if hello.draft is None:
            fail(ExitCode.USAGE, f"{record.model} has no draft model, so nothing can speculate; give --draft-model")
        self._control = control
        self._subscriber = subscriber
        self._transport = transport
        self._narrator = narrator
        self._check_alive = check_alive
        self._columns = columns
        self._timer = StepTimer()
        self._prompts = load_prompts()
        self._references: dict[str, Answer] = {}  # prompt id -> answer with spec=off
        self._began = time.monotonic()
        levels = levels_through(int(hello.knobs["threshold"]), int(hello.config.get("max_running", 64)))
        self.outcome = Outcome(
            engine=record.name,
            model=hello.model,
            draft=hello.draft,
            knobs=hello.knobs,
            levels=levels,
            tokens=tokens,
            simulation=simulation_of(hello),
        )

    def run(self) -> Outcome:
        """Everything, in order; the knob ``spec`` is back where it was afterwards.

        Raises:
            CommandError: the engine ended, refused a knob or failed a request.
            Stopped: by ``check_alive``; the outcome has what was found out until then.
        """
        outcome = self.outcome
        before = outcome.knobs["spec"]
        try:
            self._set_spec("off")
            self._make_references()
            for name, meaning in MODES.items():
                clients = _path(outcome.levels)
                self._narrator.phase(f"spec={name}: {meaning.format(**outcome.knobs)}; clients {clients}")
                self._set_spec(name)
                outcome.modes.append(self._one_mode(name))
        except BaseException:
            with suppress(ProbeError):  # whatever ended it is the news
                self._control.set_knobs({"spec": before}, why="the demo is over", timeout=1.0)
            raise
        self._set_spec(before)
        return outcome

    def _set_spec(self, value: str) -> None:
        reply = self._control.set_knobs({"spec": value}, why=WHO)
        if not isinstance(reply, Applied):
            fail(ExitCode.REFUSED, f"the engine refused spec={value} ({reply.code}): {reply.message}")

    def _make_references(self) -> None:
        """One answer a prompt with speculation off and log probabilities: what all others are compared with."""
        self._narrator.phase(f"reference: {len(self._prompts)} prompts × {self.outcome.tokens} tokens with spec=off")
        tokens, sums = self.outcome.tokens, StepSums()
        pool = JobPool(
            [partial(self._transport.chat, prompt.prompt, tokens, scored=True) for prompt in self._prompts],
            workers=len(self._prompts),
        )
        progress = ProgressLine(self._narrator.progress, self._began, self._columns)
        self._narrator.progress(HEADER)

        def on_step(step: StepEvent, us: float) -> None:
            progress.step(step, us, len(self._prompts) - sums.finished, sums.add(step, us))

        try:
            self._watch(lambda: pool.is_running, on_step)
        finally:
            pool.stop()
        self._raise_if_failed(pool.failure)
        self._catch_up(sums, len(self._prompts), on_step)
        self._references = {prompt.id: answer for prompt, answer in zip(self._prompts, pool.results, strict=True)}
        self._narrator.progress(f"rule: {rule_text(self.outcome.dtype)}")

    def _one_mode(self, name: str) -> ModeOutcome:
        tokens = self.outcome.tokens
        ramp = ClientRamp(self._ask, self._prompts, self.outcome.levels)
        load, progress = StepSums(), ProgressLine(self._narrator.progress, self._began, self._columns)
        self._narrator.progress(HEADER)

        def on_step(step: StepEvent, us: float) -> None:
            progress.step(step, us, ramp.clients, load.add(step, us))

        ramp.start()
        try:
            self._watch(lambda: ramp.is_running, on_step)
        finally:
            ramp.stop()
        self._raise_if_failed(ramp.failure)
        self._catch_up(load, len(ramp.outputs), on_step)
        compared, checks = self._compare(ramp.outputs)
        mode = ModeOutcome(name, load, compared, checks)
        self._narrator.note(
            f"spec={name}: {len(ramp.outputs)} requests × {tokens} tokens, {sameness_text([compared])}, "
            f"switches: {load.switches}, slots lost: {mode.slots_lost}"
            + (f", {WORD}" if self.outcome.what_is_simulated or load.simulated else "")
        )
        return mode

    def _ask(self, prompt: Prompt) -> list[int]:
        return self._transport.chat(prompt.prompt, self.outcome.tokens).token_ids

    def _compare(self, outputs: list[tuple[Prompt, list[int]]]) -> tuple[Tally, StepSums]:
        """All outputs against their references; continuations run under the setting that is compared."""
        limit = limit_for(self.outcome.dtype)
        asked: list[int] = []  # lengths of the continuations; jobs run in threads

        def go_on(ids: Sequence[int], tokens: int) -> list[int]:
            asked.append(tokens)
            return self._transport.complete(ids, tokens)

        jobs = [
            partial(compare, prompt.id, self._references[prompt.id], found, limit, go_on) for prompt, found in outputs
        ]
        # At most as many at a time as the policy speculates with: its continuations are to be compared too.
        pool = JobPool(jobs, workers=max(1, int(self.outcome.knobs["threshold"])))
        checks = StepSums()

        def on_step(step: StepEvent, us: float) -> None:
            checks.add(step, us)

        try:
            self._watch(lambda: pool.is_running, on_step)
        finally:
            pool.stop()
        self._raise_if_failed(pool.failure)
        self._catch_up(checks, len(asked), on_step)
        tally = Tally(
            outputs=len(outputs),
            tokens=sum(len(self._references[prompt.id].token_ids) for prompt, _ in outputs),
            differences=[difference for found in pool.results for difference in found],
        )
        for line in difference_lines(tally):
            self._narrator.note(line)
        return tally, checks

    # -- watching ---------------------------------------------------------------------------------------------------

    def _watch(self, is_busy: Callable[[], bool], on_step: OnStep) -> None:
        """Take events until the load has ended."""
        while is_busy():
            self._check_alive()
            self._take(POLL_S, on_step)

    def _catch_up(self, sums: StepSums, requests: int, on_step: OnStep) -> None:
        """Take events until all of the load's requests are seen to have ended, unless events were lost."""
        deadline = time.monotonic() + CATCH_UP_S
        while sums.finished < requests and time.monotonic() < deadline:
            self._check_alive()
            if not self._take(POLL_S, on_step) and self.outcome.events_lost:
                return

    def _take(self, timeout: float, on_step: OnStep) -> bool:
        """Handle what arrives within ``timeout`` seconds; False when nothing did."""
        items = self._subscriber.poll(timeout)
        for item in items:
            if isinstance(item, StepEvent):
                on_step(item, self._timer.cost_us(item))
            else:
                self._note(item)
        return bool(items)

    def _note(self, item: Received) -> None:
        match item:
            case Gap(recovered=False) | DropEvent():
                self.outcome.events_lost += item.count
                self._narrator.note(f"{item.count} {item.topic} events were lost on the bus")
            case Malformed():
                self.outcome.events_lost += 1
                self._narrator.note(f"an event could not be read: {item.reason}")
            case Restart():
                fail(
                    ExitCode.UNREACHABLE,
                    "the engine process died and was restarted; figures of two lives do not add up",
                )
            case KnobEvent() if item.who != WHO:
                changed = ", ".join(f"{knob}={value}" for knob, value in item.new.items())
                self.outcome.disturbances.append(f"{item.who or 'somebody'} set {changed} at step {item.step}")
            case AlertEvent():
                self._narrator.note(f"alert {item.level.upper()} [{item.code}] {item.message}")
                if item.level == "error":
                    self.outcome.errors.append(f"[{item.code}] {item.message}")
            case _:
                pass

    def _raise_if_failed(self, failure: Exception | None) -> None:
        if failure is not None:
            self._check_alive()
            fail(ExitCode.FALSE, f"a request failed: {failure}")


def _path(levels: list[int]) -> str:
    return " → ".join(str(level) for level in levels)

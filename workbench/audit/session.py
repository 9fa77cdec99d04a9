"""One audit: witnesses are put in place, requests sent and knobs turned meanwhile, and all that was seen compared."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.control import ControlClient
from probes.discovery import EngineRecord
from workbench.audit.copy_checks import check_recording
from workbench.audit.difference import Findings
from workbench.audit.evidence import Evidence, Served
from workbench.audit.request_checks import RequestChecks
from workbench.audit.screen_checks import check_screen
from workbench.audit.step_checks import StepChecks
from workbench.audit.traffic import Planned, Traffic
from workbench.audit.witness import TOPICS, Witness
from workbench.bench.answer import Answer
from workbench.bench.endpoint import Endpoint
from workbench.borrowed_knobs import BorrowedKnobs
from workbench.console import fail
from workbench.demo.prompts import load_prompts
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording
from workbench.recording.recorder import Recorder
from workbench.recording.recording_error import RecordingError
from workbench.tui.bus_feed import BusFeed
from workbench.tui.session_state import SessionState

WHO = "specwb audit"
CONTROL_S = 30.0
WAIT_S = 30.0
"""Longest wait for what has already happened to be seen by a witness."""
LOOK_S = 0.1
TOKENS_A_SWITCH = 40
"""The knobs are turned whenever the clients have got so many more tokens, so that it happens in mid-sentence."""
MOST_SWITCHES = 24


@dataclass(frozen=True)
class Audited:
    """What an audit comes to."""

    evidence: Evidence
    findings: Findings

    @property
    def is_clean(self) -> bool:
        return not self.findings.differences


def compare(evidence: Evidence) -> Findings:
    """All checks over what the witnesses saw. Pure."""
    findings = Findings()
    RequestChecks(evidence, findings).run()
    StepChecks(evidence, findings).run()
    check_recording(evidence, findings)
    check_screen(evidence, findings)
    return findings


class AuditSession:
    """Drives one engine. Nobody else may use it meanwhile."""

    def __init__(
        self, record: EngineRecord, requests: int, seed: int, recording: Path | None, say: Callable[[str], None]
    ) -> None:
        """``recording``: where to keep the recording; None makes one and throws it away."""
        assert record.http_url is not None
        self._record = record
        self._requests = requests
        self._seed = seed
        self._recording = recording
        self._say = say
        self._endpoint = Endpoint(f"{record.http_url}/v1")
        self._screen = SessionState()
        self._tokens = 0
        self._due = asyncio.Event()
        self._served: list[Served] = []
        self._switches: list[dict[str, Any]] = []

    async def run(self) -> Audited:
        """Everything, in order; the knobs are back where they were afterwards.

        Raises:
            CommandError: the engine is busy, or does not go on.
            ProbeError: the engine does not answer.
        """
        with ExitStack() as stack:
            stack.callback(self._endpoint.close)
            path = self._recording
            if path is None:
                path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specwb-audit-"))) / "audit.mcap"
            control = stack.enter_context(ControlClient(self._record, timeout=CONTROL_S, who=WHO))
            self._check_idle(control)
            witness = stack.enter_context(Witness(self._record, WHO))
            feed = stack.enter_context(_fed(BusFeed(self._record)))
            recorder = stack.enter_context(_recording(Recorder(self._record, path, TOPICS, note=WHO)))
            await self._until("the bus's subscriptions are in force", lambda: witness.is_joined)
            await self._until("the screen is connected", lambda: self._look(feed) and self._screen.hello is not None)
            await self._until("the recorder is connected", lambda: recorder.status.is_connected)
            state = control.state()
            knobs = stack.enter_context(BorrowedKnobs(control, state.knobs, WHO))
            await self._drive(Traffic([p.prompt for p in load_prompts()], self._seed, witness.hello.config), knobs)
            last = control.state().step
            await self._until("the bus has brought the last step", lambda: witness.newest_step >= last)
            await self._until(
                "the screen has the last step",
                lambda: self._look(feed) and self._screen.last_step and self._screen.last_step.step >= last,
            )
            await self._until(
                "the recording has the last step",
                lambda: not recorder.status.is_recording or _has(path, dict(witness.newest)),
            )
            knobs.restore()
            status = recorder.stop()
            evidence = Evidence(
                served=self._served,
                bus=list(witness.items),
                screen=self._screen,
                screen_now=time.monotonic(),
                first_step=state.step,
                last_step=last,
                first_epoch=state.knob_epoch,
                switches=self._switches,
                recording=_items(path),
                recording_lost=status.lost,
                recording_error=status.error,
            )
        return Audited(evidence, compare(evidence))

    def _check_idle(self, control: ControlClient) -> None:
        state = control.state()
        if state.stage not in ("idle", ""):
            fail(
                ExitCode.REFUSED,
                f"{self._record.name} is serving somebody (stage {state.stage}); an audit counts every token of the "
                f"engine, so it needs it alone: wait until it is idle",
            )

    async def _drive(self, traffic: Traffic, knobs: BorrowedKnobs) -> None:
        """Send everything."""
        references = traffic.references()
        self._say(f"{len(references)} reference answers …")
        await self._send_all(references)
        texts = [served.answer.sequences[0].text if served.answer.sequences else "" for served in self._served]
        mixed = traffic.mixed(max(1, self._requests - len(references) - 1), texts)
        self._say(f"{len(mixed)} requests at once: streams, stops, seeds, clients that leave, and switches meanwhile …")
        turning = asyncio.create_task(self._turn(knobs))
        try:
            await self._send_all(mixed)
        finally:
            turning.cancel()
            await asyncio.gather(turning, return_exceptions=True)
        if turning.done() and not turning.cancelled() and (error := turning.exception()) is not None:
            raise error
        await self._until_ended()
        await self._send_all([traffic.last()])

    async def _send_all(self, plan: list[Planned]) -> None:
        async with asyncio.TaskGroup() as group:
            for planned in plan:
                group.create_task(self._send(planned))
        self._served.sort(key=lambda served: served.planned.number)

    async def _send(self, planned: Planned) -> None:
        if planned.leave_after == 0:
            answer = await self._endpoint.abandon(planned.ask)
        elif planned.is_stream:
            answer = await self._endpoint.stream(planned.ask, self._leaves(planned))
        else:
            answer = await self._endpoint.whole(planned.ask)
            self._count(answer.known_tokens)
        self._served.append(Served(planned, answer))

    def _leaves(self, planned: Planned) -> Callable[[Answer], bool]:
        seen = 0

        def leave(answer: Answer) -> bool:
            nonlocal seen
            self._count(answer.known_tokens - seen)
            seen = answer.known_tokens
            return planned.leave_after is not None and seen >= planned.leave_after

        return leave

    def _count(self, tokens: int) -> None:
        before = self._tokens // TOKENS_A_SWITCH
        self._tokens += tokens
        if self._tokens // TOKENS_A_SWITCH > before:
            self._due.set()

    async def _turn(self, knobs: BorrowedKnobs) -> None:
        """Turn spec and threshold again and again while the requests run."""
        if self._screen.hello is None or self._screen.hello.draft is None:
            return
        rng = random.Random(self._seed)
        for _ in range(MOST_SWITCHES):
            await self._due.wait()
            self._due.clear()
            changes = {"spec": rng.choice(["auto", "on", "off"]), "threshold": rng.choice([0, 1, 2, 4, 8])}
            reply = await asyncio.to_thread(knobs.set, **changes)
            if reply is not None:
                self._switches.append({"new": reply.new, "step": reply.step, "knob_epoch": reply.knob_epoch})

    async def _until_ended(self) -> None:
        """Until the engine has ended every request that arrived; one that it never ends is a difference, not a hang."""
        with ControlClient(self._record, timeout=CONTROL_S, who=WHO) as control:
            deadline = time.monotonic() + WAIT_S
            while control.state().stage != "idle" and time.monotonic() < deadline:
                await asyncio.sleep(LOOK_S)

    def _look(self, feed: BusFeed) -> bool:
        """The screen takes in what came."""
        for item in feed.drain():
            self._screen.apply(item, time.monotonic())
        return True

    async def _until(self, what: str, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            if time.monotonic() > deadline:
                fail(ExitCode.UNREACHABLE, f"waited {WAIT_S:g} s, and still not: {what}")
            await asyncio.sleep(LOOK_S)


@contextmanager
def _fed(feed: BusFeed) -> Iterator[BusFeed]:
    feed.start()
    try:
        yield feed
    finally:
        feed.close()


@contextmanager
def _recording(recorder: Recorder) -> Iterator[Recorder]:
    try:
        recorder.start()
    except RecordingError as error:
        fail(ExitCode.USAGE, str(error))
    try:
        yield recorder
    finally:
        recorder.stop()


def _has(path: Path, newest: dict[str, int]) -> bool:
    """Whether the recording that is being made holds these newest events already."""
    with Recording.open(path.with_name(f"{path.name}.part")) as recording:
        for topic in ("step", "rows", "request", "knob"):
            kept = recording.before(float("inf"), topic, 1)
            if newest.get(topic, 0) > (getattr(kept[0][1], "seq", 0) if kept else 0):
                return False
    return True


def _items(path: Path) -> list[Any]:
    try:
        with Recording.open(path) as recording:
            return [item for _, item in recording.items()]
    except RecordingError:
        with Recording.open(path.with_name(f"{path.name}.part")) as recording:
            return [item for _, item in recording.items()]

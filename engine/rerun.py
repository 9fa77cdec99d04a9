"""A session run again: the same requests before the same steps, under the same knobs, and what came out otherwise."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from engine.admission import RequestRefusedError
from engine.config import Dtype, EngineConfig
from engine.core import EngineCore
from engine.event_sink import EventSink
from engine.request import Request
from engine.sampling_params import SamplingParams
from probes.control import Refused, SetKnobs
from probes.events import Event, StepEvent
from probes.session_script import Action, Arrival, Departure, KnobChange, SessionScript


class RerunError(ValueError):
    """A session that cannot be run again here: says why, and what to do."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's tokens part from the recorded ones."""

    request_id: str
    position: int
    """In the output, from 0."""
    step: int
    """The step that gave the token, by the recording's numbers."""
    recorded: int | None
    """Token id; None: it had ended before."""
    got: int | None

    @property
    def text(self) -> str:
        """For people."""
        recorded, got = ("its end" if token is None else f"token {token}" for token in (self.recorded, self.got))
        return f"request {self.request_id}, position {self.position}, step {self.step}: recorded {recorded}, got {got}"


class RerunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a rerun showed."""

    requests: int
    """Those that were compared."""
    tokens: int
    """Of these requests, up to the first difference of each, that one included."""
    steps: int
    """Steps that the rerun took."""
    differing: int
    """Requests whose tokens differ."""
    first_difference: Difference | None
    """The one that came in the earliest step."""

    @property
    def is_identical(self) -> bool:
        return self.first_difference is None


def config_of(script: SessionScript, model: str | None = None, draft_model: str | None = None) -> EngineConfig:
    """The recorded engine's options, with all that it had chosen by itself; ``model`` and ``draft_model`` stand for
    files that lie elsewhere here.

    Raises:
        RerunError: options that this version does not know.
    """
    options: dict[str, Any] = {
        **script.config,
        "knobs": script.knobs,
        "measured_threshold": False,
        "publish_tokens": False,
        "threads": script.model.get("threads", script.config.get("threads", 0)),
    }
    if script.model.get("dtype") in get_args(Dtype):
        options["dtype"] = script.model["dtype"]
    options |= {"model": model} if model else {}
    options |= {"draft_model": draft_model} if draft_model else {}
    try:
        return msgspec.convert(options, EngineConfig)
    except msgspec.ValidationError as error:
        raise RerunError(f"the options of the recorded engine are not of this version: {error}") from None


def rerun(script: SessionScript, core: EngineCore) -> RerunResult:
    """Run a session again on an engine that has not run yet. Its events have the recording's step numbers.

    Raises:
        RerunError: the engine refuses a request or a knob, or its steps fail.
    """
    return _Rerun(script, core).run()


class _LandedSteps:
    """The engine's own sink, and beside it the newest step that has landed."""

    def __init__(self, sink: EventSink, landed: int) -> None:
        self.landed = landed
        self.steps = 0
        self.wants, self.stage, self.t = sink.wants, sink.stage, sink.t
        self._publish = sink.publish

    def publish(self, event: Event) -> None:
        if isinstance(event, StepEvent):
            self.landed = event.step
            self.steps += 1
        self._publish(event)


@dataclass
class _Compared:
    """A request beside what was recorded of it."""

    request: Request
    expected: list[int]
    same: int = 0  # tokens that are as recorded
    difference: Difference | None = None
    is_over: bool = False

    def look(self, step: int) -> None:
        """Compare what has come by ``step``."""
        got = self.request.ids[self.request.prompt_len :]
        self.is_over = self.request.is_finished
        while self.difference is None:
            place = self.same
            if place >= len(got) and (not self.is_over or place >= len(self.expected)):
                return
            found = got[place] if place < len(got) else None
            recorded = self.expected[place] if place < len(self.expected) else None
            if found != recorded:
                name = self.request.request_id
                self.difference = Difference(request_id=name, position=place, step=step, recorded=recorded, got=found)
                return
            self.same += 1


@dataclass
class _Rerun:
    """One rerun on its way."""

    script: SessionScript
    core: EngineCore
    open: list[_Compared] = field(default_factory=list)
    over: list[_Compared] = field(default_factory=list)
    first: Difference | None = None

    def run(self) -> RerunResult:
        core, pending = self.core, deque(self.script.actions)
        sink = core.reporter.sink = _LandedSteps(core.reporter.sink, self.script.step)
        core.step_number = self.script.step
        expected = sum(isinstance(action, Arrival) and action.output_token_ids is not None for action in pending)
        while len(self.over) < expected:
            while pending and self._is_due(pending[0], sink):
                self._do(pending.popleft())
            if core.has_work:
                self._step()
            self._look(sink.landed)
        core.abort_all()
        differing = sum(compared.difference is not None for compared in self.over)
        return RerunResult(
            requests=expected,
            tokens=sum(compared.same for compared in self.over) + differing,
            steps=sink.steps,
            differing=differing,
            first_difference=self.first,
        )

    def _is_due(self, action: Action, sink: _LandedSteps) -> bool:
        """Whether it happened before the next step. An engine without work goes on to the next action: what filled the
        steps between is not in the script."""
        core = self.core
        if not core.has_work:
            core.step_number = max(core.step_number, action.step)
            sink.landed = max(sink.landed, action.landed)
        return action.step <= core.step_number and action.landed <= sink.landed

    def _do(self, action: Action) -> None:
        match action:
            case Arrival():
                self._add(action)
            case Departure():
                self.core.abort(action.request_id)
            case KnobChange():
                reply = self.core.set_knobs(SetKnobs(changes=action.new, who="rerun"))
                if isinstance(reply, Refused):
                    raise RerunError(f"the knob change before step {action.step + 1} is refused here: {reply.message}")

    def _add(self, arrival: Arrival) -> None:
        try:
            sampling = msgspec.convert({**arrival.sampling, "seed": arrival.seed}, SamplingParams)
            request = self.core.add(arrival.request_id, arrival.prompt_token_ids, sampling)
        except (msgspec.ValidationError, RequestRefusedError) as error:
            raise RerunError(
                f"request {arrival.request_id} cannot run here: {error}; is this the model of the recording?"
            ) from None
        if arrival.output_token_ids is not None:
            self.open.append(_Compared(request, arrival.output_token_ids))

    def _step(self) -> None:
        try:
            self.core.step()
        except RuntimeError as error:
            raise RerunError(f"the engine gave up: {error}") from error
        if not self.core.has_work:
            self.core.idle()

    def _look(self, step: int) -> None:
        for compared in self.open:
            compared.look(step)
            if self.first is None:
                self.first = compared.difference
        self.over += [compared for compared in self.open if compared.is_over]
        self.open = [compared for compared in self.open if not compared.is_over]

"""From a recording to the script of its session: what another engine needs to do the same again."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from probes.events import Event, HelloEvent, KnobEvent, RequestEvent, StepEvent
from probes.session_script import Action, Arrival, Departure, KnobChange, SessionScript
from probes.subscriber import Gap, Malformed, Received, Restart
from workbench.recording.recording_error import RecordingError
from workbench.replay.recorded_session import RecordedSession

TOPICS = ("hello", "step", "request", "knob", "gap", "restart", "malformed")
ENDS = ("finished", "aborted")
HOW_TO = "start the engine with `specwb serve --publish-tokens` and record it with `specwb record --with-requests`"


@dataclass
class _Boot:
    """One life of the engine, as far as nothing of it is lost."""

    hello: HelloEvent | None = None
    landed: int = 0
    actions: list[Action] = field(default_factory=list)
    outputs: dict[str, list[int]] = field(default_factory=dict)
    begun: dict[str, bool] = field(default_factory=dict)  # request id -> whether its prompt is known
    skipped: set[str] = field(default_factory=set)
    failed: int = 0
    loss: str = ""  # what ends it before its end; empty when nothing does

    def take(self, event: Event) -> None:
        match event:
            case HelloEvent():
                if self.hello is None:
                    self.hello, self.landed = event, event.step
            case StepEvent():
                self.landed = max(self.landed, event.step)
            case KnobEvent() if event.old != event.new:
                place = event.step - 1
                self.actions.append(KnobChange(step=place, landed=min(self.landed, place), new=event.new))
            case RequestEvent():
                self._request(event)

    def _request(self, event: RequestEvent) -> None:
        name, step = event.request_id, event.step
        if event.phase == "arrived":
            self.begun[name] = event.prompt_token_ids is not None
            if event.prompt_token_ids is not None:
                self.actions.append(
                    Arrival(
                        step=step,
                        landed=min(self.landed, step),
                        request_id=name,
                        prompt_token_ids=event.prompt_token_ids,
                        sampling=event.sampling or {},
                        seed=event.seed or 0,
                        output_token_ids=None,
                    )
                )
            return
        if not self.begun.get(name):
            self.skipped.add(name)
            return
        if event.phase in ENDS and event.output_token_ids is not None:
            self.outputs[name] = event.output_token_ids
        if event.phase == "aborted":
            step -= event.error is not None  # it ended within that step, which gave it nothing
            self.failed += event.error is not None
            self.actions.append(Departure(step=step, landed=min(self.landed, step), request_id=name))

    def script(self, source: str, notes: list[str]) -> SessionScript:
        """Its script; there is one once its hello is known."""
        assert self.hello is not None
        actions = [
            msgspec.structs.replace(action, output_token_ids=self.outputs.get(action.request_id))
            if isinstance(action, Arrival)
            else action
            for action in self.actions
        ]
        return SessionScript(
            source=source,
            model=self.hello.model,
            draft=self.hello.draft,
            config=self.hello.config,
            knobs=self.hello.knobs,
            step=self.hello.step,
            actions=actions,
            skipped=len(self.skipped),
            notes=notes + self._notes(),
        )

    def _notes(self) -> list[str]:
        endless = sum(map(bool, self.begun.values())) - len(self.outputs)
        return [
            text
            for count, text in (
                (bool(self.loss), f"only what came before a loss is run again: {self.loss}"),
                (
                    len(self.skipped),
                    f"{_requests(len(self.skipped))} skipped, whose beginning is not in the recording; the steps that "
                    "they shared are not quite the same",
                ),
                (endless, f"{_requests(endless)} had not ended when the recording did: run along, not compared"),
                (self.failed, f"{_requests(self.failed)} failed in the recorded engine: compared up to there"),
            )
            if count
        ]


def session_script(recording: RecordedSession, source: str) -> SessionScript:
    """The script of a recording: of its first boot that has requests, up to the first loss in it.

    Raises:
        RecordingError: there is nothing in it that could be run again; says what to do.
    """
    boots = _boots(recording)
    fit = [boot for boot in boots if boot.outputs and boot.hello is not None]
    if fit:
        notes = [f"missing from the recording: {recording.info.missing}"] if recording.info.missing else []
        if len(boots) > 1:
            notes.append(
                f"the recording has {len(boots)} boots of the engine; number {boots.index(fit[0]) + 1} is run again"
            )
        return fit[0].script(source, notes)
    if any(boot.outputs for boot in boots):
        raise RecordingError(f"{source} does not say how its engine was started; {HOW_TO}")
    if any(any(boot.begun.values()) for boot in boots):
        raise RecordingError(
            f"{source} has no request that both begins and ends in it before a loss; record for longer"
        )
    if any(boot.begun or boot.skipped for boot in boots):
        raise RecordingError(f"{source} has no prompts in it, so nothing can be run again; {HOW_TO}")
    raise RecordingError(f"{source} has no requests in it, so nothing can be run again; {HOW_TO}")


def _boots(recording: RecordedSession) -> list[_Boot]:
    boots = [_Boot()]
    for _, item in recording.items(topics=TOPICS):
        if isinstance(item, Restart):
            boots.append(_Boot())
        elif boots[-1].loss:
            continue
        elif isinstance(item, Gap | Malformed):
            boots[-1].loss = _loss(item)
        else:
            boots[-1].take(item)
    return boots


def _loss(item: Received) -> str:
    """What is lost of the events that a script is made of, in words; empty when nothing is."""
    match item:
        case Gap() if item.topic in ("request", "knob") and not item.recovered:
            return f"{item.count} {item.topic} events ({item.first} to {item.last})"
        case Malformed() if item.topic in ("", "request", "knob"):
            return item.reason
    return ""


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"

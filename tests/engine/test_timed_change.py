"""Knob changes for a while end by themselves: between two steps, and in an engine that has nothing to do."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import zmq

from engine import ipc
from engine.boot import Boot
from engine.config import EngineConfig
from engine.event_sink import MemorySink
from engine.llm import LLM
from engine.process import EngineProcess
from probes.control import Applied, ControlClient, SetKnobs
from probes.endpoints import Endpoints
from probes.events import KnobEvent
from probes.subscriber import Subscriber
from tests.engine.tiny import GREEDY, both_schedulers, prompts, step_events, tiny_config, tiny_draft, tiny_target

pytestmark = both_schedulers

DEADLINE_S = 30.0


class SteppedSink(MemorySink):
    """Keeps events, and time as the test moves it."""

    now = 1000.0

    def t(self) -> float:
        return self.now


def test_a_change_goes_back_between_two_steps() -> None:
    sink = SteppedSink()
    llm = LLM(tiny_target(), draft=tiny_draft(), sink=sink, config=tiny_config({"spec": "on"}))

    def before_step(llm: LLM) -> None:
        step = llm.core.step_number + 1
        if step == 5:
            reply = llm.core.set_knobs(SetKnobs(changes={"spec": "off"}, who="ann", revert_after_s=30.0))
            assert isinstance(reply, Applied)
        if step == 9:
            sink.now += 30.0

    llm.generate(prompts(1), GREEDY, before_step)
    modes = {event.step: event.mode for event in step_events(sink)}
    assert [modes[step] for step in (4, 5, 8, 9, 10)] == ["spec", "plain", "plain", "spec", "spec"]
    changed, back = (event for event in sink.events if isinstance(event, KnobEvent))
    assert (changed.step, changed.revert_at, back.step, back.knob_epoch) == (5, 1030.0, 9, 2)
    assert [event.knob_epoch for event in step_events(sink) if event.step in (8, 9)] == [1, 2]
    assert (back.who, back.why) == ("engine", "revert, 30 s after ann set spec to off")


def test_a_change_goes_back_in_an_idle_engine(tmp_path: Path) -> None:
    boot = Boot(
        name="test",
        boot_id="b1",
        to_engine=f"ipc://{tmp_path}/i",
        from_engine=f"ipc://{tmp_path}/o",
        bus=Endpoints.in_dir(tmp_path),
    )
    config = EngineConfig(model="tiny-random", draft_model="auto", dtype="float32", kv_tokens=4096)
    with zmq.Context() as context, context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.bind(boot.to_engine)
        pull.bind(boot.from_engine)
        process = EngineProcess(config, boot)
        thread = threading.Thread(target=process.run)
        thread.start()
        try:
            message: ipc.FromEngine | None = None
            while not isinstance(message, ipc.Ready | ipc.Fatal):
                assert pull.poll(int(DEADLINE_S * 1000)), f"never ready; the last it said is {message}"
                message = ipc.decode_from_engine(pull.recv())
            with ControlClient(boot.bus, timeout=DEADLINE_S) as client, Subscriber(boot.bus, ("knob",)) as subscriber:
                before = client.state().knobs
                reply = client.set_knobs({"threshold": 7, "spec": "off"}, revert_after_s=1.0)
                assert isinstance(reply, Applied)
                assert reply.back_to == {"threshold": before["threshold"], "spec": before["spec"]}
                waiting = client.hello().reverts
                assert [(revert.knob, revert.t) for revert in waiting] == [
                    ("threshold", reply.revert_at),
                    ("spec", reply.revert_at),
                ]
                events: list[KnobEvent] = []
                deadline = time.monotonic() + DEADLINE_S
                while len(events) < 2:
                    assert time.monotonic() < deadline
                    events += [event for event in subscriber.poll(0.2) if isinstance(event, KnobEvent)]
                state = client.state()
                assert (state.knobs, state.knob_epoch, state.reverts) == (before, 2, [])
                assert state.stage == "idle"
        finally:
            process.stop()
            thread.join(DEADLINE_S)
    assert (events[1].new, events[1].who) == (reply.back_to, "engine")

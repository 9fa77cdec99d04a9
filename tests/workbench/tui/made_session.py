"""Some minutes of an engine under a changing load, with the times that its steps took: for charts, gains and epochs."""

from __future__ import annotations

from typing import Any

from probes.events import KvUse, SpecInfo
from tests.workbench import made_events as made
from workbench.tui.feed import FeedItem


class MadeSession:
    """Appends what an engine would publish. Time is the engine's, from ``made.T0``.

    A plain step takes 40 ms + 2 ms a request, a speculating one 56 ms + 10 ms a request and gives 2.4 tokens a
    request: on is 1.53 times off at 1 request, even at about 9, and loses above.
    """

    def __init__(self, **hello: Any) -> None:
        self.t = made.T0
        self.number = 0
        self.epoch = 0
        self.knobs = made.knobs()
        self.items: list[FeedItem] = [made.hello(**hello)]
        self._beat = 0
        self._round_us = 0
        self._correct = 0.0

    @staticmethod
    def seconds_of(requests: int, spec: bool) -> float:
        return 0.056 + 0.010 * requests if spec else 0.040 + 0.002 * requests

    def decode(self, seconds: float, requests: int, queue: int = 0, spec: bool | None = None, **changes: Any) -> None:
        """Steps of so many requests for so long."""
        if spec is None:
            spec = self.knobs["spec"] == "on" or (self.knobs["spec"] == "auto" and requests <= self.knobs["threshold"])
        end = self.t + seconds
        while self.t < end - 1e-9:
            self.step(requests, queue, spec, **changes)

    def step(self, requests: int, queue: int, spec: bool, **changes: Any) -> None:
        took = self.seconds_of(requests, spec)
        self.number += 1
        self.t += took
        self._correct += 1.4 * requests if spec else 0.0
        correct = int(self._correct + 1e-9)
        self._correct -= correct
        first = min(requests, round(correct * 0.7))
        used = 400 + 330 * requests + self.number % 50
        reason = (
            ("spec_on" if self.knobs["spec"] == "on" else "threshold")
            if spec
            else ("spec_off" if self.knobs["spec"] == "off" else "above_threshold")
        )
        given: dict[str, Any] = {
            "t": self.t,
            "spec": spec,
            "queue": queue,
            "knob_epoch": self.epoch,
            "reason": reason,
            "reason_detail": f"{requests} decode requests",
            "round_us": self._round_us,
            "kv": {"target": KvUse(used=used, total=32768), "draft": KvUse(used=used - 20, total=32768)},
        }
        if spec:
            shape = {name: self.knobs[name] for name in ("steps", "topk", "draft_tokens")}
            given |= {
                "spec_info": SpecInfo(algorithm="eagle3", **shape),
                "correct_drafts": correct,
                "correct_by_position": [first, correct - first],
                "emitted": requests + correct,
                "accept_length": 1 + correct / requests,
            }
        self.items.append(made.step(self.number, requests, **(given | changes)))
        self._round_us = round(took * 1e6)
        self._heartbeats("run")

    def idle(self, seconds: float) -> None:
        """Only heartbeats."""
        end = self.t + seconds
        while self.t < end - 1e-9:
            self.t = min(end, self.t + 0.5)
            self._heartbeats("idle")
        self._round_us = 0

    def silence(self, seconds: float) -> None:
        """Nothing at all."""
        self.t += seconds
        self._beat = int(self.t - made.T0)
        self._round_us = 0

    def set(self, **new: Any) -> None:
        """A knob change by ann."""
        old = {name: self.knobs[name] for name in new}
        self.knobs |= new
        self.epoch += 1
        self.items.append(made.knob_change(self.number + 1, old, new, epoch=self.epoch, t=self.t))

    def _heartbeats(self, stage: str) -> None:
        while made.T0 + self._beat + 1 <= self.t:
            self._beat += 1
            self.items.append(made.heartbeat(self._beat, stage=stage, stage_s=0.01))

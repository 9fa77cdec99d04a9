"""Whether a step speculates: by load, by hand, and never against memory."""

from __future__ import annotations

from collections.abc import Callable

from engine.spec.choice import SpecChoice
from probes.knobs import Knobs


class ThresholdPolicy:
    """Speculate iff the step's decode requests are at most ``threshold``, with hysteresis.

    Having gone plain by the threshold, it speculates again at ``threshold - hysteresis`` (at least 1). The state is
    forgotten when the engine is idle, and when the knobs change.
    """

    name = "threshold"

    def __init__(self) -> None:
        self._gone_plain = False
        self._epoch = -1

    def reset(self) -> None:
        """Forget that the policy went plain."""
        self._gone_plain = False

    def decide(
        self, knobs: Knobs, epoch: int, requests: int, has_draft: bool, room: Callable[[int], str | None]
    ) -> SpecChoice:
        """Decide for a step of ``requests`` decode requests.

        ``room(width)``: None when the KV pool has room for ``width`` tokens a request, else what is missing in words.
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._gone_plain = False
        choice = self._by_load(knobs, requests, has_draft)
        if choice.speculate:
            missing = room(choice.draft_tokens)
            if missing is not None:
                return _plain("memory", f"{missing}; plain until it is free")
        return choice

    def _by_load(self, knobs: Knobs, requests: int, has_draft: bool) -> SpecChoice:
        if not has_draft:
            return _plain("no_draft", "no draft model is loaded")
        if knobs.spec == "off":
            return _plain("spec_off", "switched off by hand (spec=off)")
        if knobs.spec == "on":
            return _speculate(knobs, "spec_on", "switched on by hand (spec=on), the threshold is ignored")
        if knobs.threshold == 0:
            return _plain("threshold_zero", "threshold 0 never speculates")
        limit = knobs.resume_at if self._gone_plain else knobs.threshold
        if requests <= limit:
            self._gone_plain = False
            return _speculate(knobs, "threshold", f"{_decodes(requests)} <= {limit}")
        held = self._gone_plain and requests <= knobs.threshold
        self._gone_plain = True
        if held:
            return _plain(
                "threshold_hold",
                f"{_decodes(requests)} <= threshold {knobs.threshold}, but went plain: resumes at {limit}",
            )
        return _plain("above_threshold", f"{_decodes(requests)} > threshold {knobs.threshold}")


def _decodes(requests: int) -> str:
    return f"{requests} decode request{'' if requests == 1 else 's'}"


def _plain(reason: str, detail: str) -> SpecChoice:
    return SpecChoice(False, reason, detail)


def _speculate(knobs: Knobs, reason: str, detail: str) -> SpecChoice:
    return SpecChoice(True, reason, detail, knobs.steps, knobs.topk, knobs.draft_tokens)

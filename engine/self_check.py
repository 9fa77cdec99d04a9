"""A short run on a fixed prompt right after loading: warms everything up, and finds a draft that accepts nothing.

A head that is loaded wrongly does not crash; it just proposes tokens that the target never takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from engine.core import EngineCore
from engine.event_sink import NoSink
from engine.ipc import Failed
from engine.sampling_params import SamplingParams

PROMPT = "<|im_start|>user\nExplain how a rainbow forms.<|im_end|>\n<|im_start|>assistant\n"
TOKENS = 32
LEAST_ACCEPT_LENGTH = 1.1


@dataclass(frozen=True)
class SelfCheck:
    """What the run showed."""

    accept_length: float | None
    """Over the whole run, bonus included; None without a draft."""
    warnings: list[str]


def self_check(core: EngineCore) -> SelfCheck:
    """Run the fixed prompt, speculating if there is a draft; nothing of it is published or counted.

    Raises:
        RuntimeError: the engine cannot run a step.
    """
    tokenizer = core.tokenizer
    ids = tokenizer.encode(PROMPT) if tokenizer is not None else list(range(1, 17))
    ids = ids[: max(1, min(len(ids), core.max_model_len - TOKENS))]
    room = min(core.max_model_len, core.ledger.total) - len(ids)
    if room < 2:
        return SelfCheck(None, [])
    sink, knobs = core.reporter.sink, core.knobs.knobs
    core.reporter.sink = NoSink()
    if core.proposer is not None:
        core.knobs.knobs = msgspec.structs.replace(knobs, spec="on")
    try:
        params = SamplingParams(max_tokens=min(TOKENS, room), temperature=0.0, ignore_eos=True)
        request = core.add("self-check", ids, params)
        while core.has_work:
            failed = [output for output in core.step() if isinstance(output, Failed)]
            if failed:
                raise RuntimeError(f"the first run of the model failed: {failed[0].message}")
    finally:
        core.abort("self-check")
        core.reporter.sink, core.knobs.knobs = sink, knobs
        core.step_number = 0
        core.idle()
    accept = request.accept_length
    warnings = []
    if accept is not None and accept < LEAST_ACCEPT_LENGTH:
        warnings.append(
            f"the draft model is almost never accepted: accept length {accept:.2f} on a fixed prompt (1.0 is nothing "
            "at all). Speculation will only cost time. Is this head made for this model, and its layers numbered alike?"
        )
    return SelfCheck(accept, warnings)

"""A short run on a fixed prompt right after loading: warms everything up, and finds a draft that accepts nothing.

A head that is loaded wrongly does not crash; it just proposes tokens that the target never takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from engine.assembly import Assembly
from engine.ipc import Failed
from engine.models.checkpoint import TargetCheckpoint
from engine.sampling_params import SamplingParams

QUESTION = "Explain how a rainbow forms."
TOKENS = 32
LEAST_ACCEPT_LENGTH = 1.1


@dataclass(frozen=True)
class SelfCheck:
    """What the run showed."""

    accept_length: float | None
    """Over the whole run, bonus included; None without a draft, or where weights or acceptance are simulated."""
    warnings: list[str]


def self_check(assembly: Assembly) -> SelfCheck:
    """Run the fixed prompt, speculating if there is a draft; nothing of it is published or counted.

    Raises:
        RuntimeError: the engine cannot run a step.
    """
    core = assembly.core
    ids = _prompt_ids(assembly.target)
    ids = ids[: max(1, min(len(ids), core.max_model_len - TOKENS))]
    room = min(core.max_model_len, core.ledger.total) - len(ids)
    if room < 2:
        return SelfCheck(None, [])
    params = SamplingParams(max_tokens=min(TOKENS, room), temperature=0.0, ignore_eos=True)
    knobs = core.knobs.knobs
    with core.rehearsal(knobs if core.worker.algorithm is None else msgspec.structs.replace(knobs, spec="on")):
        request = core.add("self-check", ids, params)
        while core.has_work:
            failed = [output for output in core.step() if isinstance(output, Failed)]
            if failed:
                raise RuntimeError(f"the first run of the model failed: {failed[0].message}")
    accept = None if assembly.config.simulated else request.accept_length
    warnings = []
    if accept is not None and accept < LEAST_ACCEPT_LENGTH:
        warnings.append(
            f"the draft model is almost never accepted: accept length {accept:.2f} on a fixed prompt (1.0 is nothing "
            "at all). Speculation will only cost time. Is this head made for this model, and its layers numbered alike?"
        )
    return SelfCheck(accept, warnings)


def _prompt_ids(target: TargetCheckpoint) -> list[int]:
    """A question in the model's own chat template, which heads are trained on; bare where there is none."""
    try:
        return target.chat_ids(QUESTION)
    except ValueError:
        return target.tokenizer.encode(QUESTION, add_bos=True)

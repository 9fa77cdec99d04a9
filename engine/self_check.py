"""A short run on a fixed prompt right after loading: warms everything up, and finds a draft that accepts nothing.

A head that is loaded wrongly does not crash; it just proposes tokens that the target never takes. Where kernels are
compiled at their first call, prompts of other lengths follow, so that none is compiled while people are served.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice

import msgspec

from engine.assembly import Assembly
from engine.core import EngineCore
from engine.ipc import Failed
from engine.models.checkpoint import TargetCheckpoint
from engine.sampling_params import SamplingParams

QUESTION = "Explain how a rainbow forms."
TOKENS = 32
LEAST_ACCEPT_LENGTH = 1.1
SHORT = 8
"""Tokens of a prompt that is short to every kernel."""
COMPILED_TOKENS = 2
"""That requests give which are there for their prompts: one from the prompt, one from a decode."""


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
        _run(core)
    if core.worker.compiles:
        _compile_prefills(core, ids)
    accept = None if assembly.config.simulated else request.accept_length
    warnings = []
    if accept is not None and accept < LEAST_ACCEPT_LENGTH:
        warnings.append(
            f"the draft model is almost never accepted: accept length {accept:.2f} on a fixed prompt (1.0 is nothing "
            "at all). Speculation will only cost time. Is this head made for this model, and its layers numbered alike?"
        )
    return SelfCheck(accept, warnings)


def _compile_prefills(core: EngineCore, ids: list[int]) -> None:
    """A chunk that is short to every kernel, and as many tokens as a step takes, with decodes beside what is left."""
    chunk = core.config.prefill_chunk
    longest = min(core.max_model_len, core.ledger.total, chunk) - COMPILED_TOKENS
    if longest < 1:
        return
    lengths = [min(SHORT, longest), *[longest] * min(core.config.max_running, -(-chunk // longest))]
    params = SamplingParams(max_tokens=COMPILED_TOKENS, temperature=0.0, ignore_eos=True)
    with core.rehearsal(msgspec.structs.replace(core.knobs.knobs, spec="off")):
        for number, length in enumerate(lengths):
            core.add(f"self-check-{number}", list(islice(cycle(ids), length)), params)
        _run(core)


def _run(core: EngineCore) -> None:
    while core.has_work:
        failed = [output for output in core.step() if isinstance(output, Failed)]
        if failed:
            raise RuntimeError(f"the first run of the model failed: {failed[0].message}")


def _prompt_ids(target: TargetCheckpoint) -> list[int]:
    """A question in the model's own chat template, which heads are trained on; bare where there is none."""
    try:
        return target.chat_ids(QUESTION)
    except ValueError:
        return target.tokenizer.encode(QUESTION, add_bos=True)

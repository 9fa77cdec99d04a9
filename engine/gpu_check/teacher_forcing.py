"""An engine's greedy tokens against a reference's, position by position: behind a difference goes the reference's own
token, so that every position is asked about, whatever came of the ones before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.llm import LLM, Completion
from engine.sampling_params import SamplingParams

HOPELESS = 0.1
"""Share of positions that differ at which there is nothing more to learn."""

BeforeStep = Callable[[LLM], None]


@dataclass(frozen=True)
class Difference:
    """Another token than the reference's."""

    request: int
    position: int
    expected: int
    got: int
    gap: float
    """Between the logits of the reference's two likeliest tokens there."""


def make_reference(llm: LLM, prompts: Sequence[Sequence[int]], tokens: int) -> list[Completion]:
    """Greedy, to the full length, with the two likeliest tokens of every position."""
    params = SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True, logprobs=2)
    return _generate(llm, prompts, [params] * len(prompts), None)


def differences(
    reference: Sequence[Completion], llm: LLM, before_step: BeforeStep | None = None
) -> tuple[list[Difference], bool]:
    """Where ``llm`` says something else than ``reference``, and whether all positions were asked about (a hopeless
    comparison ends early)."""
    found: list[Difference] = []
    asked = sum(len(completion.token_ids) for completion in reference)
    pending = [(i, 0) for i in range(len(reference))]
    while pending:
        prompts = [reference[i].prompt_ids + reference[i].token_ids[:start] for i, start in pending]
        params = [
            SamplingParams(max_tokens=len(reference[i].token_ids) - start, temperature=0.0, ignore_eos=True)
            for i, start in pending
        ]
        behind = []
        for (i, start), got in zip(pending, _generate(llm, prompts, params, before_step), strict=True):
            wanted = reference[i].token_ids[start:]
            if len(got.token_ids) != len(wanted):
                raise RuntimeError(f"{len(got.token_ids)} tokens came where {len(wanted)} were asked for")
            for at, (expected, token) in enumerate(zip(wanted, got.token_ids, strict=True), start):
                if expected != token:
                    top = reference[i].logprobs[at].top  # a gap of log probabilities is one of logits
                    found.append(Difference(i, at, expected, token, top[0] - top[1]))
                    if at + 1 < len(reference[i].token_ids):
                        behind.append((i, at + 1))
                    break
        if len(found) > max(8, HOPELESS * asked):
            return found, False
        pending = behind
    return found, True


def summary(
    reference: Sequence[Completion], found: Sequence[Difference], complete: bool, limit: float
) -> dict[str, Any]:
    """What a comparison comes to: ``excused`` differences have a gap under ``limit``, ``decided`` ones do not."""
    decided = [difference for difference in found if difference.gap >= limit]
    return {
        "positions": sum(len(completion.token_ids) for completion in reference),
        "excused": len(found) - len(decided),
        "decided": len(decided) + (not complete),
        "complete": complete,
        "widest_gap": round(max((difference.gap for difference in found), default=0.0), 5),
        "first_decided": [[d.request, d.position, d.expected, d.got, round(d.gap, 5)] for d in decided[:5]],
        "gaps": sorted(round(difference.gap, 4) for difference in found)[-40:],
    }


def _generate(
    llm: LLM, prompts: Sequence[Sequence[int]], params: Sequence[SamplingParams], before_step: BeforeStep | None
) -> list[Completion]:
    """All prompts together.

    Raises:
        RuntimeError: one of them failed.
    """
    completions = llm.generate([list(prompt) for prompt in prompts], list(params), before_step)
    for completion in completions:
        if completion.error is not None:
            raise RuntimeError(f"a request failed: {completion.error}")
    return completions

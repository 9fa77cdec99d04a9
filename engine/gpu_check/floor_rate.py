"""From step times to a rate: what the card itself allows for requests that all start and end together."""

from __future__ import annotations


def floor_rate(clients: int, output: int, prefill_s: float, step_s: float, accept: float = 1.0) -> float:
    """Output tokens/s, prefill included.

    The prefill gives every request its first token, each step ``accept`` more: 1 plainly, the accept length where a
    step verifies (then ``step_s`` is that of a verify, and nothing is counted for drafting).
    """
    return clients * output / (prefill_s + (output - 1) / accept * step_s)


def chunks(clients: int, prompt: int, chunk: int) -> list[int]:
    """Prompts in each prefill step, when a step takes at most ``chunk`` tokens and prompts are not split."""
    each = max(1, chunk // prompt)
    full, rest = divmod(clients, each)
    return [each] * full + ([rest] if rest else [])

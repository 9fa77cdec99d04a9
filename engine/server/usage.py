"""Token counts of one HTTP request, over all its sequences."""

from __future__ import annotations

from typing import Any

from engine.ipc import Output


class UsageCounter:
    """Adds up the newest counters of each sequence; a prompt counts once, however many choices it has."""

    def __init__(self, prompt_tokens: int, sequences: int) -> None:
        self.prompt_tokens = prompt_tokens
        self._latest: list[Output | None] = [None] * sequences

    def note(self, index: int, output: Output) -> None:
        self._latest[index] = output

    def as_json(self) -> dict[str, Any]:
        """OpenAI's ``usage``, and beside it, as an extension, what speculation did for this request.

        ``accept_length`` is 1 + correct_drafts / verify_steps (the bonus token counts); null when nothing was verified.
        """
        outputs = [output for output in self._latest if output is not None]
        completion = sum(output.completion_tokens for output in outputs)
        verify_steps = sum(output.verify_steps for output in outputs)
        correct = sum(output.correct_drafts for output in outputs)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "specwb": {
                "verify_steps": verify_steps,
                "correct_drafts": correct,
                "accept_length": round(1 + correct / verify_steps, 4) if verify_steps else None,
            },
        }

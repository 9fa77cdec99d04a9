"""The engine inside the caller's process: for scripts, tests and benchmarks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.assembly import Assembly, assemble
from engine.config import EngineConfig
from engine.event_sink import EventSink
from engine.ipc import Failed, FinishReason, TokenLogprobs
from engine.kv.ledger import KvLedger
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.sampling_params import SamplingParams
from engine.spec.proposer import Proposer
from probes.control import Refused, SetKnobs
from probes.knobs import KnobError

log = logging.getLogger(__name__)

Prompt = str | Sequence[int]


@dataclass
class Completion:
    """What a prompt became."""

    request_id: str
    prompt_ids: list[int]
    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    error: str | None = None
    verify_steps: int = 0
    correct_drafts: int = 0

    @property
    def accept_length(self) -> float | None:
        """Tokens a verify gave, bonus included; None when nothing was verified."""
        return 1 + self.correct_drafts / self.verify_steps if self.verify_steps else None


class LLM:
    """A model with continuous batching and speculation.

    ``LLM("smollm2-135m").generate(["Hello"], SamplingParams(max_tokens=32, temperature=0))``
    """

    def __init__(
        self,
        model: str | TargetCheckpoint | None = None,
        *,
        draft: DraftCheckpoint | None = None,
        proposer: Callable[[KvLedger], Proposer] | None = None,
        sink: EventSink | None = None,
        config: EngineConfig | None = None,
    ) -> None:
        """Load ``model`` by name or directory, or else the one that ``config`` names (by default the built-in one).

        A checkpoint in place of a name, ``draft`` and ``proposer`` replace what ``config`` would load.

        Raises:
            ValueError: ``model`` and ``config`` name two models, or options do not fit each other.
            CheckpointError: files that are missing or do not fit.
        """
        target = model if isinstance(model, TargetCheckpoint) else None
        if isinstance(model, str):
            if config is not None and config.model != model:
                raise ValueError(
                    f"LLM was given model {model!r} and a config with model {config.model!r}; name it once, "
                    f"as in LLM(config=EngineConfig(model={model!r}, ...))"
                )
            config = config or EngineConfig(model=model)
        config = config or EngineConfig(draft_model="auto" if target is None else None)
        self.assembly: Assembly = assemble(config, target=target, draft=draft, proposer=proposer, sink=sink)
        for warning in self.assembly.warnings:
            log.warning("%s", warning)
        self.core = self.assembly.core
        self._count = 0

    def set_knobs(self, **changes: str | int) -> None:
        """Change knobs from the next step on.

        Raises:
            KnobError: nothing was changed.
        """
        reply = self.core.set_knobs(SetKnobs(changes=changes, who="LLM.set_knobs"))
        if isinstance(reply, Refused):
            raise KnobError(reply.message)

    def chat_ids(self, user: str) -> list[int]:
        """Token ids of one user turn in the model's chat template.

        Raises:
            ValueError: the model has no chat template.
        """
        return self.assembly.target.chat_ids(user)

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
        before_step: Callable[[LLM], None] | None = None,
    ) -> list[Completion]:
        """Complete prompts together (strings, or token ids), in the order given.

        ``before_step`` is called between steps, for switching knobs on the way.
        """
        tokenizer = self.assembly.target.tokenizer
        sampling = sampling or SamplingParams()
        each = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else list(sampling)
        done: dict[str, Completion] = {}
        for prompt, params in zip(prompts, each, strict=True):
            self._count += 1
            ids = tokenizer.encode(prompt, add_bos=True) if isinstance(prompt, str) else list(prompt)
            done[f"llm-{self._count}"] = Completion(f"llm-{self._count}", ids)
            self.core.add(f"llm-{self._count}", ids, params)
        while self.core.has_work:
            if before_step is not None:
                before_step(self)
            for output in self.core.step():
                completion = done[output.request_id]
                if isinstance(output, Failed):
                    completion.finish_reason, completion.error = "error", output.message
                    continue
                completion.token_ids.extend(output.token_ids)
                completion.logprobs.extend(output.logprobs or [])
                completion.text += output.text or ""
                completion.finish_reason, completion.stop_reason = output.finish_reason, output.stop_reason
                completion.verify_steps, completion.correct_drafts = output.verify_steps, output.correct_drafts
        self.core.idle()
        for completion, params in zip(done.values(), each, strict=True):
            if not params.stop:
                ids = completion.token_ids
                stopped = isinstance(completion.stop_reason, int)  # the stop token's own text is not delivered
                completion.text = tokenizer.decode(ids[:-1] if stopped else ids)
        return list(done.values())

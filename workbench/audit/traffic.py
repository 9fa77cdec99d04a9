"""Which requests an audit sends: every way in which a request can end, and more of them than fit at once. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.bench.endpoint import CHAT, COMPLETIONS, Ask

Kind = Literal["reference", "stream", "whole", "stop", "sampled", "choices", "left", "hog", "abandoned", "last"]

REFERENCES = 4
LONGEST = 10**6
"""More than any context has room for: the server cuts it to what there is."""


@dataclass(frozen=True)
class Planned:
    """One request, and how its client behaves."""

    number: int
    """From 1, in the order of sending."""
    kind: Kind
    ask: Ask
    is_stream: bool
    leave_after: int | None = None
    """The client hangs up once it has so many tokens; 0: right after sending."""
    choices: int = 1


class Traffic:
    """Plans an audit's requests. The same seed, prompts and engine give the same plan."""

    def __init__(self, prompts: Sequence[str], seed: int, config: Mapping[str, Any]) -> None:
        """``config``: the engine's start options, out of its hello event."""
        self._prompts = prompts
        self._rng = random.Random(seed)
        self._config = config
        self._number = 0

    def references(self) -> list[Planned]:
        """Greedy answers whose texts tell where stop strings can be."""
        return [self._plan("reference", index, {"max_tokens": 32}, is_stream=True) for index in range(REFERENCES)]

    def mixed(self, count: int, texts: Sequence[str]) -> list[Planned]:
        """``count`` requests to be sent at once; ``texts``: the references' answers, in their order."""
        hogs = min(self.hogs_to_fill(), count // 2)
        kinds: list[Kind] = ["stream", "stop", "sampled", "left", "whole", "choices", "stop", "sampled", "abandoned"]
        rest: list[Kind] = [kinds[index % len(kinds)] for index in range(count - hogs)]
        self._rng.shuffle(rest)
        # The hogs go first: they take the room that the others then have to wait for.
        first: list[Kind] = ["hog"] * hogs
        return [self._one(kind, texts) for kind in [*first, *rest]]

    def last(self) -> Planned:
        """One request alone: after it, nothing may be in use."""
        return self._plan("last", 0, {"max_tokens": 4}, is_stream=False)

    def hogs_to_fill(self) -> int:
        """Requests for all that one may have that leave no room for another one."""
        page, pool, context = self._room()
        each = -(-context // page)
        return max(1, min(int(self._config.get("max_running") or 64), pool // page // each))

    def _hog_tokens(self) -> int:
        """The most an answer may have: what a context holds; half the pool where that is smaller, as the server refuses
        what can never fit, and with its prompt more than half keeps the next one out.
        """
        _, pool, context = self._room()
        return LONGEST if context <= pool else pool // 2

    def _room(self) -> tuple[int, int, int]:
        """A page, the KV pool in whole pages, the longest context: in tokens."""
        page = int(self._config.get("page_size") or 256)
        pool = int(self._config.get("kv_tokens") or 32768) // page * page
        return page, pool, int(self._config.get("max_model_len") or 2048)

    def _one(self, kind: Kind, texts: Sequence[str]) -> Planned:
        rng = self._rng
        index, length = rng.randrange(len(self._prompts)), rng.randint(6, 48)
        match kind:
            case "hog":
                return self._plan(kind, index, {"max_tokens": self._hog_tokens()}, True, leave_after=rng.randint(3, 24))
            case "left":
                return self._plan(kind, index, {"max_tokens": 64}, True, leave_after=rng.randint(1, 8))
            case "abandoned":
                return self._plan(kind, index, {"max_tokens": 16}, True, leave_after=0)
            case "stop":
                index = rng.randrange(REFERENCES)
                text = texts[index]
                at = rng.randrange(len(text)) if text else 0
                stop = text[at : at + rng.randint(1, 4)] or "\n"
                return self._plan(kind, index, {"max_tokens": 40, "stop": [stop]}, is_stream=rng.random() < 0.5)
            case "sampled":
                fields = {"max_tokens": length, "temperature": rng.choice([0.7, 1.0, 1.3]), "seed": rng.randrange(1000)}
                return self._plan(kind, index, fields, is_stream=rng.random() < 0.5)
            case "choices":
                fields = {"max_tokens": length, "temperature": 1.0, "seed": rng.randrange(1000), "n": 2}
                return self._plan(kind, index, fields, is_stream=rng.random() < 0.5, choices=2)
            case _:
                return self._plan(kind, index, {"max_tokens": length}, is_stream=kind == "stream")

    def _plan(
        self,
        kind: Kind,
        index: int,
        fields: dict[str, Any],
        is_stream: bool,
        leave_after: int | None = None,
        choices: int = 1,
    ) -> Planned:
        self._number += 1
        text = self._prompts[index % len(self._prompts)]
        body: dict[str, Any] = {"temperature": 0, **fields}
        # Texts of both dialects; where a stop string is looked for, in the dialect that its reference had.
        if kind in ("reference", "stop") or self._number % 2:
            path, body = CHAT, {"messages": [{"role": "user", "content": text}], **body}
        else:
            path, body = COMPLETIONS, {"prompt": text, **body}
        return Planned(self._number, kind, Ask(path, body, {"ignore_eos": True}), is_stream, leave_after, choices)

"""What a run asks for: prompts of a file with a natural end of text, or random words of a given length."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from workbench.bench.endpoint import CHAT, COMPLETIONS, Ask
from workbench.demo.prompts import Prompt

GREEDY = {"temperature": 0}

# Short common words: nearly every tokenizer that was trained on text has each, with the space before it, as one token.
_WORDS = (
    "the of and to in is was he for it with as his on be at by had are but from or have an they which one you were all "
    "her she there would their we him been has when who will no more if out so up said what its about than into them "
    "can only other time new some could these two may first then do any like my now over such our man me even most "
    "made after also did many before must through years where much your way well down should because each just those "
    "people too little state good very make world still own see men work long here get both between life being under "
    "day same another know while last might us great old year off come since go against came right used take three"
)
WORDS = _WORDS.split(" ")


class Workload(Protocol):
    """Request number i is the same in every run, so that settings are compared on the same work."""

    @property
    def size(self) -> int:
        """Different requests there are before they repeat."""
        ...

    def ask(self, index: int) -> Ask: ...

    def described(self) -> dict[str, Any]:
        """For the report."""
        ...


class ChatPrompts:
    """User messages, answered by the model's own chat template until it ends the text or ``max_tokens`` does."""

    def __init__(self, prompts: Sequence[Prompt], max_tokens: int, source: str) -> None:
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._source = source

    @property
    def size(self) -> int:
        return len(self._prompts)

    def ask(self, index: int) -> Ask:
        text = self._prompts[index % len(self._prompts)].prompt
        return Ask(CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": self._max_tokens, **GREEDY})

    def described(self) -> dict[str, Any]:
        return {
            "dataset_name": "prompts",
            "dataset_path": self._source,
            "prompts": self.size,
            "max_tokens": self._max_tokens,
            "ignore_eos": False,
            **GREEDY,
        }


class RandomWords:
    """Words without sense, no two requests alike, and answers of a fixed length where the server can be told so."""

    def __init__(self, input_len: int, output_len: int, seed: int) -> None:
        self._input_len = input_len
        self._output_len = output_len
        self._seed = seed
        self._words = input_len

    @property
    def size(self) -> int:
        return 8

    def fit(self, words: int, tokens: int) -> None:
        """Given that a prompt of so many words had so many tokens: from now on ask with as many words as fit."""
        if tokens > 0:
            self._words = max(1, round(self._input_len * words / tokens))

    def ask(self, index: int, *, words: int | None = None) -> Ask:
        rng = random.Random(f"{self._seed}/{index}")
        prompt = " ".join(rng.choices(WORDS, k=words or self._words))
        body = {"prompt": prompt, "max_tokens": self._output_len, **GREEDY}
        return Ask(COMPLETIONS, body, {"ignore_eos": True})

    def described(self) -> dict[str, Any]:
        return {
            "dataset_name": "random",
            "random_input_len": self._input_len,
            "random_output_len": self._output_len,
            "words": self._words,
            "seed": self._seed,
            "max_tokens": self._output_len,
            "ignore_eos": True,
            **GREEDY,
        }


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts of a file with one ``{"id": …, "prompt": …}`` a line.

    Raises:
        ValueError: naming the file, the line and what is expected.
    """
    expected = 'expected one {"id": …, "prompt": …} a line'
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; {expected}") from None
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=Prompt))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}, line {number}: {error}; {expected}") from None
    if not found:
        raise ValueError(f"{path} has no prompt; {expected}")
    return found

"""Token ids to text while they arrive, without ever cutting a character in two."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

from engine.text.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """One answer's text, piece by piece; cost is constant per token however long the answer grows.

    The pieces and the flush, joined, equal ``tokenizer.decode`` of all ids.
    """

    def __init__(
        self, tokenizer: Tokenizer, prompt_ids: Sequence[int] | None = None, skip_special: bool = True
    ) -> None:
        """Start an answer.

        Args:
            tokenizer: whose bytes to use.
            prompt_ids: what the answer continues; only whether there is any matters (a SentencePiece vocabulary
                drops the space before the first word of a text, but not of a continuation).
            skip_special: leave out the text of special tokens.
        """
        self._tokenizer = tokenizer
        self._skipped = tokenizer.special_token_ids if skip_special else frozenset()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._drop_space = tokenizer.strips_leading_space and not prompt_ids

    def push(self, ids: Iterable[int]) -> str:
        """Text that these tokens complete; the first bytes of an unfinished character wait for the rest."""
        data = b"".join(self._tokenizer.token_bytes(i) for i in ids if i not in self._skipped)
        if data and self._drop_space:
            data = data.removeprefix(b" ")
            self._drop_space = False
        return self._decoder.decode(data)

    def flush(self) -> str:
        """At the end of the answer: U+FFFD for a character that never got finished, else nothing."""
        return self._decoder.decode(b"", final=True)

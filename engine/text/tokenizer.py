"""Text to token ids and back, with the exact bytes behind every token.

Decoding is done here on bytes and not by the ``tokenizers`` library: streaming needs to know which bytes a token
brought, and a decode of everything must equal the sum of the streamed pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

import tokenizers

Alphabet = Literal["byte_level", "byte_fallback"]

_FALLBACK_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenizerError(ValueError):
    """The tokenizer is of a kind that cannot be decoded exactly."""


class Tokenizer:
    """A ``tokenizers`` pipeline plus what the model files say beside it (which ids end an answer)."""

    def __init__(self, backend: tokenizers.Tokenizer, eos_token_ids: Iterable[int] = ()) -> None:
        """Take a ready pipeline.

        Raises:
            TokenizerError: when its decoder is neither byte-level nor SentencePiece with byte fallback.
        """
        self._backend = backend
        self.eos_token_ids: tuple[int, ...] = tuple(dict.fromkeys(eos_token_ids))
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=True)
        self._alphabet, self._strips_leading_space = _alphabet_of(backend)
        self._special: dict[int, str] = {}  # token id -> its text, tokens that never show in an answer
        self._added: dict[int, str] = {}  # token id -> its text, tokens that stand for themselves
        for token_id, token in backend.get_added_tokens_decoder().items():
            (self._special if token.special else self._added)[token_id] = token.content
        self._bytes: dict[int, bytes] = {}

    @property
    def strips_leading_space(self) -> bool:
        """True for SentencePiece vocabularies, whose first word carries a space that the text does not have."""
        return self._strips_leading_space

    @property
    def special_token_ids(self) -> frozenset[int]:
        return frozenset(self._special)

    def encode(self, text: str, allow_special: bool = True, *, add_bos: bool = False) -> list[int]:
        """Token ids of ``text``.

        Args:
            text: any string; what no vocabulary covers becomes byte tokens.
            allow_special: read ``<|im_end|>`` and its like as the one special token; False spells them out as text.
            add_bos: also put in front what this tokenizer puts in front of a document (often nothing). Chat
                templates write it themselves, so leave it off for rendered chats.

        Raises:
            ValueError: for half a surrogate pair, which JSON can spell and UTF-8 cannot.
        """
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError("text: holds half of a surrogate pair, expected Unicode that UTF-8 can write")
        backend = self._backend if allow_special else self._without_special
        return list(backend.encode(text, add_special_tokens=add_bos).ids)

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Text of ``ids``; bytes that are no UTF-8 become U+FFFD."""
        data = b"".join(self.token_bytes(i) for i in ids if not (skip_special and i in self._special))
        if self._strips_leading_space and data.startswith(b" "):
            data = data[1:]
        return data.decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token, perhaps a part of a character; empty for padding ids that name no token.

        Raises:
            ValueError: for a negative id.
        """
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = self._find_bytes(token_id)
        return known

    def first_difference(self, other: Tokenizer) -> tuple[int, str | None, str | None] | None:
        """The lowest id that means another token in ``other``: (id, token here, token there), None if there is none."""
        for token_id in range(max(self.vocab_size, other.vocab_size)):
            here, there = self._backend.id_to_token(token_id), other._backend.id_to_token(token_id)
            if here != there:
                return token_id, here, there
        return None

    @cached_property
    def _without_special(self) -> tokenizers.Tokenizer:
        # A copy, because the switch is a property of the whole pipeline and other threads may be encoding with it.
        copy = tokenizers.Tokenizer.from_str(self._backend.to_str())
        copy.encode_special_tokens = True
        return copy

    def _find_bytes(self, token_id: int) -> bytes:
        if token_id < 0:
            raise ValueError(f"token id: got {token_id}, expected 0 to {self.vocab_size - 1}")
        for literal in (self._special, self._added):
            if token_id in literal:
                return literal[token_id].encode()
        token = self._backend.id_to_token(token_id)
        if token is None:
            return b""
        if self._alphabet == "byte_level":
            return byte_level_bytes(token)
        fallback = _FALLBACK_BYTE.fullmatch(token)
        if fallback is not None:
            return bytes([int(fallback[1], 16)])
        return token.replace("\u2581", " ").encode()


def byte_level_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins: character -> byte. Printable Latin-1 stands for itself, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    hidden = [byte for byte in range(256) if byte not in set(printable)]
    alphabet.update({chr(0x100 + index): byte for index, byte in enumerate(hidden)})
    return alphabet


_BYTE_OF = byte_level_alphabet()


def byte_level_bytes(token: str) -> bytes:
    """Bytes of a byte-level token; characters outside the alphabet (hand-added tokens) stand for themselves."""
    try:
        return bytes([_BYTE_OF[char] for char in token])
    except KeyError:
        return b"".join(bytes([_BYTE_OF[char]]) if char in _BYTE_OF else char.encode() for char in token)


def _alphabet_of(backend: tokenizers.Tokenizer) -> tuple[Alphabet, bool]:
    """Which bytes tokens stand for, and whether a first space is dropped."""
    decoder: dict[str, Any] = json.loads(backend.decoder.__getstate__()) if backend.decoder is not None else {}
    steps: list[dict[str, Any]] = decoder.get("decoders", [decoder])
    kinds = [step.get("type", "none") for step in steps]
    if kinds == ["ByteLevel"]:
        return "byte_level", False
    if "ByteFallback" in kinds or "Metaspace" in kinds:
        strips = any(step.get("type") == "Strip" and step.get("start", 0) > 0 for step in steps)
        metaspace = any(
            step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never" for step in steps
        )
        return "byte_fallback", strips or metaspace
    raise TokenizerError(
        f"tokenizer: its decoder is {' + '.join(kinds)}, expected ByteLevel or one with ByteFallback or Metaspace. "
        "Use a model whose tokenizer.json is byte-level BPE (Llama 3, SmolLM) or SentencePiece (Llama 2)."
    )

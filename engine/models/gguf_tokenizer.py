"""A byte-level BPE tokenizer out of a GGUF's fields: tokens, token types, merges and the name of its splitting rule."""

from __future__ import annotations

from typing import Protocol

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors

from engine.models.checkpoint_error import CheckpointError
from engine.text.tokenizer import Tokenizer

_CONTROL, _USER_DEFINED = 3, 4  # token types of the GGUF specification

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class FieldSource(Protocol):
    """The part of a GGUF's fields that a tokenizer is made from."""

    source: str

    def get(self, key: str, default: object = None) -> object: ...

    def text(self, key: str) -> str: ...

    def strings(self, key: str) -> list[str]: ...


def build_tokenizer(fields: FieldSource) -> Tokenizer:
    """Make the tokenizer.

    Raises:
        CheckpointError: for another vocabulary than byte-level BPE, or a splitting rule that is not known; a wrong
            rule would not crash but quietly feed the model other tokens than it was trained on.
    """
    kind = fields.text("tokenizer.ggml.model")
    if kind != "gpt2":
        raise CheckpointError(
            f"{fields.source}: tokenizer.ggml.model is {kind}, expected gpt2 (byte-level BPE). "
            "Use the model's safetensors directory with its tokenizer.json."
        )
    tokens = fields.strings("tokenizer.ggml.tokens")
    merges = [_pair(merge) for merge in fields.strings("tokenizer.ggml.merges")]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    try:
        backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(
            f"{fields.source}: tokenizer.ggml.merges do not fit tokenizer.ggml.tokens ({error}). Fetch the file again."
        ) from error
    backend.pre_tokenizer = _splitter(fields)
    backend.decoder = decoders.ByteLevel()
    types = fields.get("tokenizer.ggml.token_type") or []
    if not isinstance(types, list):
        raise CheckpointError(f"{fields.source}: tokenizer.ggml.token_type is {types!r}, expected one number a token.")
    control = [token for token, kind in zip(tokens, types, strict=False) if kind == _CONTROL]
    own = [token for token, kind in zip(tokens, types, strict=False) if kind == _USER_DEFINED]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in own])
    bos = fields.get("tokenizer.ggml.bos_token_id")
    if fields.get("tokenizer.ggml.add_bos_token") and isinstance(bos, int) and 0 <= bos < len(tokens):
        backend.post_processor = processors.TemplateProcessing(
            single=f"{tokens[bos]} $A", special_tokens=[(tokens[bos], bos)]
        )
    # What ends an answer: the end of the text, and of a turn where the file names one apart.
    eos = (fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    return Tokenizer(backend, [index for index in eos if isinstance(index, int)])


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _splitter(fields: FieldSource) -> pre_tokenizers.PreTokenizer:
    rule = fields.text("tokenizer.ggml.pre")
    byte_level = pre_tokenizers.ByteLevel
    if rule == "gpt-2":
        return byte_level(add_prefix_space=False, use_regex=True)
    if rule in ("smollm", "starcoder"):
        # Every digit stands alone before the GPT-2 rule runs, so the spaces before a number stay together.
        return pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), byte_level(add_prefix_space=False, use_regex=True)]
        )
    if rule in ("llama-bpe", "llama3"):
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LLAMA3_SPLIT), behavior="isolated"),
                byte_level(add_prefix_space=False, use_regex=False),
            ]
        )
    raise CheckpointError(
        f"{fields.source}: tokenizer.ggml.pre is {rule}, expected gpt-2, smollm, starcoder or llama-bpe. "
        "Use the model's safetensors directory with its tokenizer.json."
    )

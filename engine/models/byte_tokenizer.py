"""The tokenizer and chat template of the tiny random models: real ones, small enough to make in memory."""

from __future__ import annotations

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from engine.text.tokenizer import Tokenizer, byte_level_alphabet

TINY_VOCAB = 320
"""Tokens of the built-in tiny model."""

EOS_ID = 2
"""``<|im_end|>``."""

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_PAIRS = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic "
    "ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no"
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer(
    vocab_size: int, eos_token_ids: tuple[int, ...] = (EOS_ID,), *, named_rest: bool = False
) -> Tokenizer:
    """Byte-level BPE of at most ``vocab_size`` tokens: three special ones, the bytes (letters first), common pairs.

    With fewer than 259 tokens some bytes have none, and encoding leaves them out. ``named_rest``: exactly
    ``vocab_size`` tokens; those that no text encodes to show as their number, so that whatever a model of random
    weights says is text.
    """
    stand_in = {byte: char for char, byte in byte_level_alphabet().items()}
    letters = [byte for byte in range(256) if byte == ord(" ") or bytes([byte]).isalpha()]
    letters_first = [*letters, *(byte for byte in range(256) if byte not in letters)]
    tokens = [*_SPECIAL, *(stand_in[byte] for byte in letters_first)][:vocab_size]
    merges = [(pair[0], pair[1]) for pair in _PAIRS.split()][: vocab_size - len(tokens)]
    tokens += [left + right for left, right in merges]
    if named_rest:
        space = stand_in[ord(" ")]
        tokens += [f"{space}#{token}" for token in range(len(tokens), vocab_size)]
    backend = tokenizers.Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL[:vocab_size]])
    return Tokenizer(backend, eos_token_ids)

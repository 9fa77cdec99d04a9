"""The text side of a model alone: tokenizer and chat template, without its weights and without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.models import catalog
from engine.models.named_shapes import NamedShape
from engine.models.target_files import find_target
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TextAssets:
    """What turns messages into token ids and back."""

    tokenizer: Tokenizer
    chat_template: ChatTemplate | None


def load_text(name_or_dir: str) -> TextAssets:
    """The text side of what ``load_target`` loads under the same name.

    Raises:
        CheckpointError: unknown name, not fetched, or files that cannot be read.
    """
    found = find_target(name_or_dir)
    if isinstance(found, catalog.RandomModel):
        return _tiny_text()
    if isinstance(found, NamedShape):
        return _stand_in_text(found)
    return _hf_text(found) if found.is_dir() else _gguf_text(found)


def _gguf_text(path: Path) -> TextAssets:
    from engine.models.gguf_fields import Fields, read_chat_template, read_gguf
    from engine.models.gguf_tokenizer import build_tokenizer

    fields = Fields(path.name, read_gguf(path))
    return TextAssets(tokenizer=build_tokenizer(fields), chat_template=read_chat_template(fields))


def _hf_text(directory: Path) -> TextAssets:
    from engine.models.hf_text import read_hf_text
    from engine.models.json_file import read_json

    return read_hf_text(directory, read_json(directory / "config.json"))


def _tiny_text() -> TextAssets:
    from engine.models.byte_tokenizer import CHAT_TEMPLATE, TINY_VOCAB, byte_tokenizer

    return TextAssets(tokenizer=byte_tokenizer(TINY_VOCAB), chat_template=ChatTemplate(CHAT_TEMPLATE))


def _stand_in_text(named: NamedShape) -> TextAssets:
    from engine.models.byte_tokenizer import CHAT_TEMPLATE, byte_tokenizer

    return TextAssets(
        tokenizer=byte_tokenizer(named.shape.vocab_size, named_rest=True), chat_template=ChatTemplate(CHAT_TEMPLATE)
    )

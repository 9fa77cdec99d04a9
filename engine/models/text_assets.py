"""The text side of a model alone: tokenizer and chat template, without its weights and without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.models import catalog
from engine.models.tensor_check import CheckpointError
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer

__all__ = ["CheckpointError", "TextAssets", "load_text"]


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
    built_in = catalog.TARGETS.get(name_or_dir)
    if isinstance(built_in, catalog.RandomModel):
        return _tiny_text()
    path = built_in.path() if built_in is not None else Path(name_or_dir).expanduser()
    if path.is_file() and path.suffix == ".gguf" and (built_in is None or built_in.is_fetched):
        return _gguf_text(path)
    if path.is_dir():
        return _hf_text(path)
    # Not there or incomplete: the loader of the whole model has the words for it.
    from engine.models.checkpoint import load_target

    target = load_target(name_or_dir)
    return TextAssets(tokenizer=target.tokenizer, chat_template=target.chat_template)


def _gguf_text(path: Path) -> TextAssets:
    from engine.models.gguf_fields import Fields, read_chat_template, read_gguf
    from engine.models.gguf_tokenizer import build_tokenizer

    fields = Fields(path.name, read_gguf(path))
    return TextAssets(tokenizer=build_tokenizer(fields), chat_template=read_chat_template(fields))


def _hf_text(directory: Path) -> TextAssets:
    from engine.models.hf_text import read_hf_text
    from engine.models.json_file import read_json

    text = read_hf_text(directory, read_json(directory / "config.json"))
    return TextAssets(tokenizer=text.tokenizer, chat_template=text.chat_template)


def _tiny_text() -> TextAssets:
    from engine.models.byte_tokenizer import CHAT_TEMPLATE, TINY_VOCAB, byte_tokenizer

    return TextAssets(tokenizer=byte_tokenizer(TINY_VOCAB), chat_template=ChatTemplate(CHAT_TEMPLATE))

"""The text side of a model alone: tokenizer and chat template, without reading its weights."""

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
        return _from_target(name_or_dir)
    path = built_in.path() if built_in is not None else Path(name_or_dir).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        return _from_gguf(path)
    return _from_target(name_or_dir)


def _from_gguf(path: Path) -> TextAssets:
    from engine.models import gguf_checkpoint as checkpoint
    from engine.models.gguf_tokenizer import build_tokenizer

    fields = checkpoint.Fields(path.name, checkpoint._Reader(path))
    return TextAssets(tokenizer=build_tokenizer(fields), chat_template=checkpoint._chat_template(fields))


def _from_target(name_or_dir: str) -> TextAssets:
    """By way of the whole checkpoint; also what words the error for names and files that are not there."""
    from engine.models.checkpoint import load_target

    target = load_target(name_or_dir)
    return TextAssets(tokenizer=target.tokenizer, chat_template=target.chat_template)

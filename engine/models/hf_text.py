"""Tokenizer and chat template of a directory in Hugging Face layout, without its weights and without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers

from engine.models.checkpoint_error import CheckpointError
from engine.models.json_file import read_json
from engine.models.text_assets import TextAssets
from engine.text.chat_template import ChatTemplate, ChatTemplateError
from engine.text.tokenizer import Tokenizer, TokenizerError


def read_hf_text(directory: Path, config: dict[str, Any]) -> TextAssets:
    """Read ``tokenizer.json`` and what stands beside it; ``config`` is the directory's config.json.

    Raises:
        CheckpointError: a file is missing or cannot be read.
    """
    backend = _read_tokenizer(directory)
    settings = _optional_json(directory / "tokenizer_config.json")
    generation = _optional_json(directory / "generation_config.json")
    eos = _eos_ids(str(directory), config, generation, backend, _token_text(settings.get("eos_token")))
    return TextAssets(tokenizer=Tokenizer(backend, eos), chat_template=_chat_template(directory, settings))


def _read_tokenizer(directory: Path) -> tokenizers.Tokenizer:
    path = directory / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{directory}: tokenizer.json is missing. Copy it there; a tokenizer.model does not do.")
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
        Tokenizer(backend)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{path}: cannot be read ({error}). Fetch it again.") from error
    return backend


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _token_text(token: object) -> str:
    """A special token of tokenizer_config.json: a string, or an object that has it as ``content``."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _eos_ids(
    source: str, config: dict[str, Any], generation: dict[str, Any], backend: tokenizers.Tokenizer, eos_token: str
) -> tuple[int, ...]:
    """Ids that end an answer: the generation config's, else the config's; and the tokenizer's own."""
    stated = generation.get("eos_token_id", config.get("eos_token_id"))
    listed = stated if isinstance(stated, list) else [] if stated is None else [stated]
    if not all(isinstance(token_id, int) and token_id >= 0 for token_id in listed):
        raise CheckpointError(f"{source}: eos_token_id is {stated!r}, expected a token id or a list of them.")
    own = backend.token_to_id(eos_token) if eos_token else None
    return tuple(dict.fromkeys(listed + ([own] if own is not None else [])))


def _chat_template(directory: Path, settings: dict[str, Any]) -> ChatTemplate | None:
    """``chat_template.jinja`` where there is one, else the tokenizer config's (of several the one named default)."""
    path = directory / "chat_template.jinja"
    source: object = path.read_text(encoding="utf-8") if path.is_file() else settings.get("chat_template")
    if isinstance(source, list):
        source = {str(entry.get("name")): entry.get("template") for entry in source}.get("default")
    if not isinstance(source, str):
        return None
    try:
        return ChatTemplate(
            source,
            bos_token=_token_text(settings.get("bos_token")),
            eos_token=_token_text(settings.get("eos_token")),
        )
    except ChatTemplateError as error:
        raise CheckpointError(f"{directory}: {error}") from error

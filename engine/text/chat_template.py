"""A model's own chat template: messages to one prompt string."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.sandbox

ROLES = ("system", "user", "assistant")


class ChatTemplateError(ValueError):
    """Messages that cannot be rendered, or a template that does not compile."""


class ChatTemplate:
    """A Jinja template from a model's files, run in a sandbox: it came with the weights and may be anyone's."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Compile ``source``.

        Raises:
            ChatTemplateError: when it is no valid Jinja; names the line.
        """
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda pattern: datetime.datetime.now().strftime(pattern)
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise ChatTemplateError(f"chat template, line {error.lineno}: {error.message}") from error

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """The prompt of a conversation.

        Args:
            messages: each with ``role`` (system, user or assistant; developer counts as system) and ``content``: a
                string, or a list of ``{"type": "text", "text": ...}`` parts, which are joined by newlines.
            add_generation_prompt: end with the opening of the assistant's turn.

        Raises:
            ChatTemplateError: for an empty list, another role, content that is not text, or when the template itself
                refuses; names the message by its index.
        """
        if not messages:
            raise ChatTemplateError("messages: got an empty list, expected at least one message")
        plain = [_plain_message(index, message) for index, message in enumerate(messages)]
        try:
            return self._template.render(messages=plain, add_generation_prompt=add_generation_prompt, **self._tokens)
        except (jinja2.TemplateError, TypeError, ValueError) as error:  # a template may also just trip over them
            raise ChatTemplateError(f"messages: the model's chat template refused them: {error}") from error


def _plain_message(index: int, message: Mapping[str, Any]) -> dict[str, str]:
    role = message.get("role")
    if role == "developer":
        role = "system"
    if role not in ROLES:
        raise ChatTemplateError(f"messages[{index}].role: got {role!r}, expected one of {', '.join(ROLES)}")
    return {"role": role, "content": _plain_text(f"messages[{index}].content", message.get("content"))}


def _plain_text(where: str, content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or not content:
        raise ChatTemplateError(f"{where}: got {content!r}, expected a string or a list of text parts")
    texts = []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        text = part.get("text") if isinstance(part, Mapping) else None
        if kind != "text" or not isinstance(text, str):
            raise ChatTemplateError(
                f'{where}[{number}]: got a part of type {kind!r}, expected {{"type": "text", "text": "..."}}: '
                "this model reads text only"
            )
        texts.append(text)
    return "\n".join(texts)


def _to_json(value: object, indent: int | None = None) -> str:
    # Jinja's own filter escapes <, > and & for HTML; a prompt wants them as they are.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)

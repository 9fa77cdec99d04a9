"""The eight everyday prompts that the project's figures are measured on."""

from __future__ import annotations

from importlib.resources import files

import msgspec


class Prompt(msgspec.Struct, frozen=True):
    """One user message."""

    id: str
    prompt: str


def load_prompts() -> list[Prompt]:
    """All of them, in the order of the file."""
    lines = (files("workbench.demo") / "prompts.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Prompt) for line in lines if line]

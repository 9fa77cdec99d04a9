"""What a word of a command line may become: running engines, knobs and their values, recordings, models.

Whoever presses TAB waits for this, and an error would land between prompt and cursor: where something cannot be asked,
there are no candidates.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from probes.discovery import list_records
from probes.errors import ProbeError
from probes.knobs import KNOBS
from workbench.cli.shipped import shipped_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Candidates = list[CompletionItem[str]]

MODELS_S = 5.0
"""How long the engine's part may take to list its models."""


def items(found: Iterable[tuple[str, str]], incomplete: str) -> Candidates:
    """(word, help) pairs that begin as what was typed."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(word, help=help or None) for word, help in found if word.startswith(incomplete)]


def engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """Names of running engines."""
    try:
        records = list_records(clean=False)
    except (ProbeError, OSError):
        return []
    return items(((record.name, f"{record.model}, {record.state}") for record in records), incomplete)


def _recording_files(incomplete: str) -> Candidates:
    """Recordings, finished or not, and folders on the way to them."""
    paths = sorted(glob.glob(f"{glob.escape(incomplete)}*"))
    files = [(path, "recording") for path in paths if path.endswith((".mcap", ".mcap.part"))]
    return items([*files, *((f"{path}/", "folder") for path in paths if os.path.isdir(path))], incomplete)


def recordings(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """Files of recordings, and the names of those that ship with specwb."""
    return _recording_files(incomplete) + items(((name, "ships with specwb") for name in shipped_names()), incomplete)


def engines_or_recordings(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """For commands that take either."""
    return engines(ctx, param, incomplete) + _recording_files(incomplete)


def changes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """``knob=`` for the knobs that the line does not have yet, and behind it the values."""
    knob, is_value, _ = incomplete.partition("=")
    if is_value:
        spec = KNOBS.get(knob.replace("-", "_"))
        return items(((f"{knob}={choice}", "") for choice in spec.choices), incomplete) if spec else []
    there = {word.partition("=")[0] for word in _words(ctx, param)}
    return items(((f"{name}=", spec.help) for name, spec in KNOBS.items() if name not in there), incomplete)


def name_or_changes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """``[NAME] KNOB=VALUE…``: a name can only come first."""
    first = [] if _words(ctx, param) or "=" in incomplete else engines(ctx, param, incomplete)
    return first + changes(ctx, param, incomplete)


def name_or_knob(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """``[NAME] [KNOB]``."""
    before = _words(ctx, param)
    if len(before) > 1 or (before and before[0] in KNOBS):
        return []
    first = [] if before else engines(ctx, param, incomplete)
    return first + items(((name, spec.help) for name, spec in KNOBS.items()), incomplete)


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """Built-in models, named shapes, and folders."""
    return _built_in(incomplete, "target", "shape") + _folders(incomplete)


def drafts(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """Built-in heads, folders, and the words for the head that belongs to the model, or for none."""
    words = (("auto", "the head that belongs to the model"), ("none", "no speculation"))
    return items(words, incomplete) + _built_in(incomplete, "draft") + _folders(incomplete)


def fetchable(ctx: click.Context, param: click.Parameter, incomplete: str) -> Candidates:
    """Built-in models of both kinds."""
    return _built_in(incomplete, "target", "draft")


def _words(ctx: click.Context, param: click.Parameter) -> Sequence[str]:
    """The words that the line has for a parameter already."""
    given: Any = ctx.params.get(param.name or "")
    return [word for word in given if isinstance(word, str)] if isinstance(given, list | tuple) else []


def _built_in(incomplete: str, *kinds: str) -> Candidates:
    """The engine's part of the installation knows them; it is asked in a process of its own."""
    command = [sys.executable, "-m", "engine.models", "list", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MODELS_S, check=True)
        return items(
            ((row["name"], row["title"]) for row in json.loads(done.stdout) if row["kind"] in kinds), incomplete
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return []


def _folders(incomplete: str) -> Candidates:
    found = sorted(path for path in glob.glob(f"{glob.escape(incomplete)}*") if os.path.isdir(path))
    return items(((f"{path}/", "") for path in found), incomplete)

"""Every command line on the pages names verbs, options, targets and paths that there are."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
import tomllib

import click
import pytest

from engine.gpu_check.__main__ import make_parser as make_check_parser
from engine.measure.__main__ import make_parser
from engine.server.fields import Fields
from engine.server.openai_protocol import parse_chat
from probes.ci.program import make_parser as make_probe_parser
from probes.knobs import Knobs, apply_changes
from tests.docs.pages import PAGES, ROOT, blocks, commands
from workbench.cli import VERBS, specwb
from workbench.cli.assignments import parse, split_words

LINES = sorted({line for path in PAGES for line in commands(path.read_text())})


def lines_of(program: str) -> list[str]:
    found = [line for line in LINES if line.split()[0] == program]
    assert found, f"no page has a line that begins with {program}"
    return found


def parsed(words: list[str]) -> click.Context:
    """The command line as click understands it; nothing is run.

    Raises:
        click.UsageError: an option or a value that does not exist.
    """
    verb = specwb.get_command(click.Context(specwb), words[0])
    assert verb is not None, f"no verb {words[0]!r}; there are {', '.join(VERBS)}"
    return verb.make_context(words[0], words[1:])


def test_every_line_is_of_a_program_that_is_checked_here() -> None:
    assert {line.split()[0] for line in LINES} == {"specwb", "make", "curl", "python"}


@pytest.mark.parametrize("line", lines_of("specwb"))
def test_specwb_line_parses(line: str) -> None:
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "&"]
    context = parsed(words)
    if words[0] == "set":
        changes = parse(split_words(context.params["words"])[1])
        apply_changes(Knobs(), changes)


def test_a_wrong_line_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parsed(["tail", "--no-such-option"])
    with pytest.raises(AssertionError, match="no verb"):
        parsed(["no-such-verb"])


@pytest.mark.parametrize("line", lines_of("make"))
def test_make_line_names_targets_and_variables(line: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE))
    variables = set(re.findall(r"^(\w+) \?=", makefile, re.MULTILINE))
    for word in shlex.split(line, comments=True)[1:]:
        name, is_variable, _ = word.partition("=")
        assert name in (variables if is_variable else targets)


def probe_parser(program: str) -> argparse.ArgumentParser:
    """The arguments of a scripted probe."""
    parser = make_probe_parser(program, "", 8)
    importlib.import_module(program).add_options(parser)
    return parser


@pytest.mark.parametrize("line", lines_of("python"))
def test_measuring_line_parses_and_names_a_file_that_is_there(line: str) -> None:
    program, *words = shlex.split(line)[2:]
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert words[:2] == ["install", "-e"]
        assert set(re.sub(r"^\.\[|\]$", "", words[2]).split(",")) <= set(extras)
        return
    if program.startswith("probes.ci."):
        probe_parser(program).parse_args(words)
        return
    if program == "engine.gpu_check":
        make_check_parser().parse_args(words)
        return
    assert program == "engine.measure"
    options = make_parser().parse_args(words)
    assert (ROOT / getattr(options, "prompts", "README.md")).is_file()


@pytest.mark.parametrize("line", lines_of("curl"))
def test_curl_line_asks_for_what_there_is(line: str) -> None:
    words = shlex.split(line)
    (url,) = (word for word in words if word.startswith("http://"))
    routes = re.findall(r'Route\("([^"]+)"', (ROOT / "engine/server/app.py").read_text())
    path = re.sub(r"http://127\.0\.0\.1:8000", "", url)
    assert path in routes
    if "-d" in words:
        assert path == "/v1/chat/completions"
        parse_chat(Fields(json.loads(words[words.index("-d") + 1])))


def test_python_blocks_compile() -> None:
    for path in PAGES:
        for block in blocks(path.read_text(), "python"):
            compile(block, str(path), "exec")

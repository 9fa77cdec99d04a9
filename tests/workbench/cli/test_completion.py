"""Completion, asked for as the shells ask: by the environment; and once by a real bash."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.workbench.cli.test_main import ROOT
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine
from workbench.cli import VERBS, main
from workbench.cli.shell_words import SHELLS
from workbench.cli.shipped import shipped_names
from workbench.exit_codes import ExitCode

Capture = pytest.CaptureFixture[str]


class Shell:
    """Asks ``specwb`` as a completion script does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def ask(self, *words: str, shell: str = "bash") -> list[str]:
        """Candidates for the last word; the ones before it stand on the line."""
        line = ["specwb", *words]
        self._monkeypatch.setenv("_SPECWB_COMPLETE", f"{shell}_complete")
        self._monkeypatch.setenv("COMP_WORDS", "\n".join(line))
        self._monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(line) - 1))
        assert main([]) == 0
        captured = self._capsys.readouterr()
        assert captured.err == ""
        lines = captured.out.splitlines()
        if shell == "zsh":
            return lines[1::3]
        found = [line.removeprefix("plain,") for line in lines if line]
        return [word.partition("\t")[0] for word in found] if shell == "fish" else found


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.mark.parametrize("kind", SHELLS)
def test_verbs_names_and_knobs(engine: MadeEngine, shell: Shell, kind: str) -> None:
    assert shell.ask("", shell=kind) == list(VERBS)
    assert shell.ask("wh", shell=kind) == ["which"]
    assert shell.ask("attach", "", shell=kind) == ["made"]
    assert shell.ask("set", "th", shell=kind) == ["threshold="]
    assert shell.ask("set", "made", "--ti", shell=kind) == ["--timeout"]
    assert shell.ask("tail", "made", "--topic", "he", shell=kind) == ["heartbeat", "hello"]


def test_the_order_of_words_of_set_and_get(make_engine: MakeEngine, shell: Shell) -> None:
    make_engine("alpha")
    make_engine("beta")
    assert shell.ask("set", "")[:3] == ["alpha", "beta", "spec="]
    assert shell.ask("set", "b") == ["beta"]
    assert "alpha" not in shell.ask("set", "beta", "")
    assert "spec=" not in shell.ask("set", "beta", "spec=on", "")
    assert shell.ask("get", "beta", "draft") == ["draft_tokens", "draft_sync"]
    assert shell.ask("get", "beta", "spec", "") == []
    assert shell.ask("which", "alpha", "") == []


@pytest.mark.parametrize("kind", ["zsh", "fish"])
def test_values_in_shells_that_keep_the_word_whole(engine: MadeEngine, shell: Shell, kind: str) -> None:
    assert shell.ask("set", "spec=o", shell=kind) == ["spec=on", "spec=off"]
    assert shell.ask("set", "made", "draft-sync=", shell=kind) == [
        "draft-sync=lazy",
        "draft-sync=eager",
        "draft-sync=sticky",
    ]
    assert shell.ask("set", "threshold=", shell=kind) == [], "a number is the operator's to choose"
    assert shell.ask("set", "nonsense=", shell=kind) == []


def test_values_in_bash_which_breaks_words_at_the_sign(engine: MadeEngine, shell: Shell) -> None:
    """Only the part behind the sign is replaced, so only that is answered."""
    assert shell.ask("set", "made", "spec", "=") == ["auto", "on", "off"]
    assert shell.ask("set", "made", "spec", "=", "o") == ["on", "off"]
    assert "spec=" not in shell.ask("set", "made", "spec", "=", "on", "")
    assert shell.ask("set", "spec=o") == ["spec=on", "spec=off"], "where COMP_WORDBREAKS has no such sign"
    assert shell.ask("set", "--expect", "spec", "=", "a") == ["auto"]


def test_recordings_are_files_and_folders(
    engine: MadeEngine, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.mcap", "cut.mcap.part", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "old").mkdir()
    assert shell.ask("replay", "") == ["cut.mcap.part", "run.mcap", "old/", *shipped_names()]
    assert shell.ask("recordings", "info", "r") == ["run.mcap", "ramp"]
    assert shell.ask("check", "") == ["made", "cut.mcap.part", "run.mcap", "old/"]


def test_models(shell: Shell) -> None:
    """The engine's part of the installation knows them."""
    assert shell.ask("models", "fetch", "") == [
        "smollm2-135m",
        "tiny-random",
        "smollm2-135m-eagle3",
        "tiny-random-eagle3",
    ]
    assert shell.ask("serve", "--model", "tiny") == ["tiny-random"]
    assert shell.ask("serve", "--model", "shape", ":", "smol") == ["smollm2-135m"], "bash breaks words at the colon too"
    assert shell.ask("serve", "--model", "shape:smol", shell="zsh") == ["shape:smollm2-135m"]
    assert shell.ask("serve", "--draft-model", "n") == ["none"]


def test_what_cannot_be_asked_has_no_candidates(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error would land between prompt and cursor."""
    (tmp_path / "specwb").write_text("a file in the way")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("workbench.cli.candidates.sys.executable", "/no/such/python")
    assert shell.ask("attach", "") == []
    assert shell.ask("models", "fetch", "") == []
    assert shell.ask("no-such-verb", "x", "")[:1] == ["serve"]


def test_verbs_are_completed_without_importing_any() -> None:
    code = (
        "import os, sys; os.environ.update(_SPECWB_COMPLETE='bash_complete', COMP_WORDS='specwb ', COMP_CWORD='1');"
        "from workbench.cli import VERBS, main; main([]);"
        "sys.exit(', '.join(v for v in VERBS if f'workbench.cli.{v}' in sys.modules) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def arguments(command: click.Command) -> list[click.Argument]:
    mine = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return [*mine, *(argument for each in below for argument in arguments(each))]


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_has_candidates(verb: str) -> None:
    for argument in arguments(importlib.import_module(f"workbench.cli.{verb}").command):
        assert argument._custom_shell_complete or isinstance(argument.type, click.Choice), argument.name


@pytest.mark.parametrize("kind", SHELLS)
def test_the_script(kind: str, capsys: Capture) -> None:
    assert main(["completion", kind]) == 0
    script = capsys.readouterr().out
    assert f"_SPECWB_COMPLETE={kind}_complete" in script
    checker = shutil.which(kind)
    if checker is not None:
        result = subprocess.run([checker, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")
    assert main(["completion", "tcsh"]) == ExitCode.USAGE


def test_a_real_bash(engine: MadeEngine, tmp_path: Path) -> None:
    """The script as installed; `specwb` is found on the path, as it would be."""
    program = tmp_path / "specwb"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m workbench "$@"\n')
    program.chmod(0o755)
    lines = [["set", "ma"], ["set", "made", "thre"], ["set", "made", "spec", "=", "o"]]
    asks = "\n".join(
        f"COMP_WORDS=(specwb {' '.join(words)}); COMP_CWORD={len(words)}; _specwb_completion specwb 2>/dev/null; "
        'echo "${COMPREPLY[*]}"'
        for words in lines
    )
    result = subprocess.run(
        ["bash", "--norc", "-c", f'PATH="{tmp_path}:$PATH"; eval "$(specwb completion bash)"\n{asks}'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.splitlines() == ["made", "threshold=", "on off"], result.stderr

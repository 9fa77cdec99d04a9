"""The command as a whole: grammar, help, exit codes, speed of start."""

from __future__ import annotations

import importlib.util
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context, Group

from tests.workbench import golden
from workbench.cli import VERBS, main, specwb
from workbench.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]
BUILT = [verb for verb in VERBS if importlib.util.find_spec(f"workbench.cli.{verb}")]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    golden.check("cli-help", capsys.readouterr().out)


@pytest.mark.parametrize("verb", BUILT)
def test_help_of_each_verb_has_an_example_that_parses(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    examples = [shlex.split(line) for line in text.splitlines() if line.strip().startswith(f"specwb {verb}")]
    assert examples, text
    assert isinstance(specwb, Group)
    command = specwb.get_command(Context(specwb), verb)
    assert command is not None
    for words in examples:
        arguments = words[2:]
        arguments = arguments[: arguments.index("|")] if "|" in arguments else arguments
        command.make_context(verb, arguments)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["frobnicate"], ExitCode.USAGE, "no verb 'frobnicate'; the verbs are serve, ls"),
        (["ls", "--frob"], ExitCode.USAGE, "No such option"),
        (["set"], ExitCode.USAGE, "Missing argument"),
        (["set", "made"], ExitCode.USAGE, "no knob to change; give at least one as knob=value"),
        (["set", "a=1", "made"], ExitCode.USAGE, "got 'made', expected knob=value"),
        (["set", "a=1", "a=2"], ExitCode.USAGE, "knob a is given twice"),
        (["get", "a", "b", "c"], ExitCode.USAGE, "expected at most a NAME and a knob"),
        (["tail", "--topic", "alert", "--steps", "3"], ExitCode.USAGE, "add --topic step"),
        (["ls"], ExitCode.OK, "no engine is running; start one with `specwb serve`"),
        (["get"], ExitCode.NO_ENGINE, "no engine is running; start one with `specwb serve`"),
        (["which", "nope"], ExitCode.NO_ENGINE, "no engine named 'nope'"),
        (["tail", "nope"], ExitCode.NO_ENGINE, "no engine named 'nope'"),
        (["set", "nope", "threshold=3"], ExitCode.NO_ENGINE, "start it with `specwb serve --name nope`"),
        (["attach"], ExitCode.USAGE, "use `specwb tail`"),
    ],
)
def test_exit_codes(arguments: list[str], code: ExitCode, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == "", "stdout is for data"


@pytest.mark.parametrize("arguments", [["--help"], ["ls"]])
def test_quick_verbs_import_nothing_heavy(arguments: list[str]) -> None:
    heavy = ("torch", "textual", "numpy", "asyncio", "rich.console")
    code = (
        f"import sys; from workbench.cli import main; code = main({arguments!r}); "
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stderr.splitlines()[-1] == "[]"


def test_attach_without_a_terminal_says_one_line(tmp_path: Path) -> None:
    """B110: no hang, no crash, no escape code; names what works."""
    result = subprocess.run(
        [sys.executable, "-m", "workbench", "attach", "made"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        "specwb: attach needs a terminal on stdin, stdout and stderr; use `specwb tail made` in pipes and scripts\n"
    )


def test_attach_with_its_errors_in_a_file_does_not_draw_there() -> None:
    """Textual draws on stderr: `attach 2>file` would leave a blank screen whose keys still work."""
    master, terminal = pty.openpty()
    try:
        result = subprocess.run(
            [sys.executable, "-m", "workbench", "attach", "made"],
            cwd=ROOT,
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(master)
        os.close(terminal)
    assert result.returncode == 2
    assert result.stderr.startswith("specwb: attach needs a terminal on stdin, stdout and stderr")


def test_a_bug_is_not_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("workbench.cli.ls.list_records", broken)
    assert main(["ls"]) == ExitCode.INTERNAL
    assert "this is a bug in specwb: RuntimeError: boom" in capsys.readouterr().err

"""Streams that are closed, full or of another encoding, and words that nobody could print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.workbench import made_events as made
from tests.workbench.cli.test_main import ROOT
from tests.workbench.made_engine import MadeEngine
from workbench.cli import main
from workbench.cli.tail import event_text
from workbench.exit_codes import ExitCode


def specwb(*words: str | bytes, **options: object) -> subprocess.CompletedProcess[str]:
    streams: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    return run([sys.executable, "-m", "workbench", *words], cwd=ROOT, text=True, timeout=60, check=False, **streams)


@contextmanager
def pipe_that_nobody_reads() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def test_closed_stdout_does_not_matter(engine: MadeEngine) -> None:
    result = specwb("get", "made", "spec", stdout=None, preexec_fn=lambda: os.close(1))
    assert (result.returncode, result.stderr) == (ExitCode.OK, "")


def test_closed_stderr_leaves_the_exit_code(engine: MadeEngine) -> None:
    result = specwb("get", "made", "no_such_knob", stderr=None, preexec_fn=lambda: os.close(2))
    assert result.returncode == main(["get", "made", "no_such_knob"]) != ExitCode.OK


def test_a_full_disk_is_said_in_words(engine: MadeEngine) -> None:
    with open("/dev/full", "w") as full:
        result = specwb("get", "made", "spec", stdout=full)
    assert result.returncode == ExitCode.FALSE
    assert result.stderr == "specwb: the output cannot be written: No space left on device\n"


def test_a_character_that_the_encoding_lacks_is_no_failure(engine: MadeEngine) -> None:
    """The knob has changed by then: the exit code must not say otherwise."""
    result = specwb("set", "made", "threshold=5", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (ExitCode.OK, "")
    assert result.stdout.startswith("threshold: 4 ? 5\n")


def test_models_for_a_reader_that_has_left() -> None:
    with pipe_that_nobody_reads() as writer:
        result = specwb("models", stdout=writer)
    assert (result.returncode, result.stderr) == (ExitCode.BROKEN_PIPE, "")


@pytest.mark.parametrize("words", [["--help"], ["ls", "--help"], ["--version"], ["completion", "zsh"]])
def test_help_for_a_reader_that_has_left(words: list[str]) -> None:
    with pipe_that_nobody_reads() as writer:
        result = specwb(*words, stdout=writer)
    assert (result.returncode, result.stderr) == (ExitCode.BROKEN_PIPE, "")


@pytest.mark.parametrize("module", ["workbench.cli", "click", "workbench.console", "workbench.cli.ls", "zmq"])
def test_interrupted_while_it_still_imports(module: str) -> None:
    """Ctrl-C in the first tenth of a second, where the time goes into imports: no trace of theirs."""
    program = f"""
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.argv = ["specwb", "ls"]
runpy.run_module("workbench", run_name="__main__")
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (ExitCode.INTERRUPTED, "", "")


def test_words_that_are_no_utf8_are_refused() -> None:
    result = specwb("set", "made", "spec=off", "--why", b"\xff")
    assert (result.returncode, result.stderr) == (ExitCode.USAGE, r"Error: '\udcff' is not valid UTF-8" + "\n")


@pytest.mark.parametrize("seconds", ["nan", "-1", "0", "1e300", "inf"])
@pytest.mark.parametrize("verb", ["get", "set", "which"])
def test_seconds_that_no_socket_can_wait(verb: str, seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["threshold=1"] if verb == "set" else []
    assert main([verb, *words, "--timeout", seconds]) == ExitCode.USAGE
    assert "--timeout" in capsys.readouterr().err


def test_a_reason_cannot_steer_the_terminal() -> None:
    """What somebody typed as the reason is one line of plain text for everyone who watches."""
    event = made.knob_change(7, {"spec": "on"}, {"spec": "off"}, why="\x1b[2Jgone\nlost")
    text = event_text(event)
    assert text.isprintable()
    assert text.endswith("gone lost)")

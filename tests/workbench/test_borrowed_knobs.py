"""Knobs that a command turns for a while, against a real control socket."""

from __future__ import annotations

import pytest

from probes.control import ControlClient
from tests.workbench.made_engine import MadeEngine
from workbench.borrowed_knobs import BorrowedKnobs
from workbench.console import CommandError
from workbench.exit_codes import ExitCode


def test_they_are_given_back_also_when_the_command_fails(engine: MadeEngine) -> None:
    def fails() -> None:
        with ControlClient(engine.record) as control, BorrowedKnobs(control, engine.board.as_dict(), "test") as knobs:
            knobs.set(spec="off", threshold=2)
            knobs.set(spec="on")
            assert (engine.board.knobs.spec, engine.board.knobs.threshold) == ("on", 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (engine.board.knobs.spec, engine.board.knobs.threshold) == ("auto", 4)
    assert [change.why for change in engine.board.history] == ["test", "test", "test: done"]


def test_a_value_in_force_already_is_no_change(engine: MadeEngine) -> None:
    with ControlClient(engine.record) as control, BorrowedKnobs(control, engine.board.as_dict(), "test") as knobs:
        assert knobs.set(spec="auto") is None
    assert engine.board.knob_epoch == 0


def test_what_somebody_else_set_meanwhile_stays(engine: MadeEngine, capsys: pytest.CaptureFixture[str]) -> None:
    """Two clients changing one knob: the later hand wins, and is told of."""
    with ControlClient(engine.record) as control, ControlClient(engine.record, who="ann") as ann:
        with BorrowedKnobs(control, engine.board.as_dict(), "test") as knobs:
            knobs.set(spec="off", threshold=2)
            ann.set_knobs({"spec": "on"})
            with pytest.raises(CommandError, match="spec off → on: somebody else") as failure:
                knobs.set(spec="auto")
        assert failure.value.code == ExitCode.REFUSED
        assert (engine.board.knobs.spec, engine.board.knobs.threshold) == ("on", 4)

        with BorrowedKnobs(control, engine.board.as_dict(), "test") as knobs:
            knobs.set(spec="off")
            ann.set_knobs({"spec": "auto"})
        assert engine.board.knobs.spec == "auto"
    assert "spec=auto was set by another hand and stays so" in capsys.readouterr().err


def test_an_engine_that_is_gone_ends_nothing_but_the_hope(
    engine: MadeEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.borrowed_knobs.RESTORE_S", 0.2)
    with ControlClient(engine.record) as control, BorrowedKnobs(control, engine.board.as_dict(), "test") as knobs:
        knobs.set(spec="off")
        engine.close()
    assert "spec=auto could not be set back, it may still be spec=off" in " ".join(capsys.readouterr().err.split())

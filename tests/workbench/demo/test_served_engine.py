"""What is said of an engine of the demo's own; `test_demo.py` runs it."""

from __future__ import annotations

import shutil

import pytest

from workbench.demo.served_engine import ServedEngine


@pytest.mark.parametrize(
    ("keep", "words"),
    [(False, "specwb serve --dtype float32"), (True, "specwb set demo-7")],
)
def test_a_knob_is_set_where_there_will_be_an_engine(monkeypatch: pytest.MonkeyPatch, keep: bool, words: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert ServedEngine("demo-7", ["--dtype", "float32"], keep=keep).how_to_set == words

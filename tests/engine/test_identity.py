"""The hello event: what it says of an engine, and what it costs."""

from __future__ import annotations

import inspect

import pytest

from engine.identity import hello_of
from tests.engine.tiny import eagle_engine


def test_asking_again_parses_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hellos are made in the bus's thread beside a running engine: a reader that asks often must not slow it down."""
    llm, _ = eagle_engine()
    first = hello_of(llm.assembly, "tiny", None, 1.0)
    monkeypatch.setattr(inspect, "getsourcelines", lambda thing: pytest.fail(f"looked for the source of {thing}"))
    llm.set_knobs(spec="off")
    again = hello_of(llm.assembly, "tiny", None, 2.0)
    assert again.which["worker"] == first.which["worker"]
    assert again.which["worker"]["defined"].startswith("engine/core.py:")
    assert again.which["policy"]["why"].startswith("spec=off")

"""The hello event: what it says of an engine, and what it costs."""

from __future__ import annotations

import inspect

import pytest

from engine.assembly import assemble
from engine.config import EngineConfig
from engine.identity import hello_of
from probes.control import SetKnobs
from tests.engine.tiny import eagle_engine


def test_asking_again_parses_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hellos are made in the bus's thread beside a running engine: a reader that asks often must not slow it down."""
    llm, _ = eagle_engine()
    first = hello_of(llm.assembly, "tiny", None, 1.0)
    monkeypatch.setattr(inspect, "getsourcelines", lambda thing: pytest.fail(f"looked for the source of {thing}"))
    llm.set_knobs(spec="off")
    again = hello_of(llm.assembly, "tiny", None, 2.0)
    assert again.which["worker"] == first.which["worker"]
    assert again.which["worker"]["defined"].startswith("engine/host_worker.py:")
    assert again.which["policy"]["why"].startswith("spec=off")


def test_the_head_is_named_and_not_the_word_that_chose_it() -> None:
    config = EngineConfig(model="tiny-random", draft_model="auto", dtype="float32", kv_tokens=4096, threads=1)
    hello = hello_of(assemble(config), "tiny", None, 1.0)
    assert hello.which["algorithm"]["why"] == "draft model tiny-random-eagle3 is loaded"


def test_what_goes_back_is_said() -> None:
    llm, _ = eagle_engine()
    llm.core.set_knobs(SetKnobs(changes={"spec": "off"}, who="ann", revert_after_s=900.0))
    (revert,) = hello_of(llm.assembly, "tiny", None, 1.0).reverts
    assert (revert.knob, revert.back_to, revert.who) == ("spec", "on", "ann")

"""What an engine is made of when nobody names a draft, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.assembly import assemble
from engine.config import EngineConfig
from engine.identity import what_runs
from engine.llm import LLM
from engine.models import catalog
from engine.models.checkpoint_error import CheckpointError, NoBuiltInDraft
from probes.knobs import Knobs
from tests.engine.tiny import tiny_target

TINY = "tiny-random"


def test_a_model_without_a_head_of_its_own_is_served_plain_and_says_so() -> None:
    """B46: `which` and the start warning say why nothing speculates, and what to do."""
    assembly = assemble(EngineConfig(dtype="float32"), target=tiny_target())
    assert assembly.draft is None
    [warning] = assembly.warnings
    assert warning.startswith("every step is plain: ")
    assert "--draft-model DIRECTORY" in warning
    why = what_runs(assembly)["algorithm"]["why"]
    assert "none is built in" in why
    assert "--draft-model DIRECTORY" in why


def test_it_is_refused_when_speculation_was_asked_for() -> None:
    with pytest.raises(NoBuiltInDraft, match="none is built in"):
        assemble(EngineConfig(dtype="float32", knobs=Knobs(spec="on")), target=tiny_target())


def test_a_damaged_head_is_refused_also_when_nobody_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B94: `auto` is no reason to go on without the head that should be there."""

    @dataclass(frozen=True, kw_only=True)
    class DamagedHead(catalog.PackagedHead):
        def path(self) -> Path:
            return tmp_path

    head = DamagedHead(name="tiny-random-eagle3", title="damaged", licence="Apache-2.0", target=TINY)
    monkeypatch.setitem(catalog.DRAFTS, head.name, head)
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        assemble(EngineConfig(model=TINY, dtype="float32"))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b'\x08\x00\x00\x00\x00\x00\x00\x00{"fc')
    with pytest.raises(CheckpointError):
        assemble(EngineConfig(model=TINY, dtype="float32"))


def test_none_asked_for_needs_no_warning() -> None:
    assembly = assemble(EngineConfig(model=TINY, draft_model="none", dtype="float32"))
    assert assembly.warnings == []
    assert "--draft-model none" in what_runs(assembly)["algorithm"]["why"]


def test_two_names_for_the_model_are_refused() -> None:
    with pytest.raises(ValueError, match="model 'tiny-random' and a config with model 'smollm2-135m'; name it once"):
        LLM(TINY, config=EngineConfig(dtype="float32"))
    llm = LLM(TINY, config=EngineConfig(model=TINY, dtype="float32"))
    assert llm.assembly.target.name == "tiny-random (random weights)"

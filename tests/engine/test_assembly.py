"""What an engine is made of when nobody names a draft, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import tokenizers
import torch
from tokenizers.processors import TemplateProcessing

from engine.assembly import assemble
from engine.config import EngineConfig
from engine.event_sink import MemorySink
from engine.identity import hello_of, what_runs
from engine.llm import LLM
from engine.models import catalog
from engine.models.checkpoint_error import CheckpointError, NoBuiltInDraft
from engine.models.named_shapes import SHAPES
from engine.models.shape_checkpoint import shape_draft, shape_target
from engine.sampling_params import SamplingParams
from engine.text.tokenizer import Tokenizer
from probes.events import StepEvent
from probes.knobs import Knobs
from tests.engine.tiny import tiny_config, tiny_target

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


def test_simulated_acceptance_needs_a_draft() -> None:
    with pytest.raises(ValueError, match=r"--simulate-accept needs drafts to accept.*started with --draft-model none"):
        assemble(EngineConfig(model=TINY, draft_model="none", dtype="float32", simulate_accept=2.0))


def test_a_shape_is_served_and_says_everywhere_that_it_is_random() -> None:
    """Six layers of it: the sizes of a layer are the small model's."""
    small = SHAPES["shape:smollm2-135m"]
    few = replace(small, shape=replace(small.shape, num_layers=6, vocab_size=1000), draft_vocab_size=500)
    target = shape_target(few, torch.float32, torch.device("cpu"))
    config = EngineConfig(model=small.name, weights="random", dtype="float32", kv_tokens=4096, threads=1)
    sink = MemorySink()
    llm = LLM(target, draft=shape_draft(few, torch.float32, torch.device("cpu")), sink=sink, config=config)
    [completion] = llm.generate(["the rain"], SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True))
    assert len(completion.token_ids) == 8
    assert len(set(completion.token_ids)) > 1
    hello = hello_of(llm.assembly, "shape", None, 1.0)
    assert hello.simulated
    assert hello.which["simulated"]["why"] == "random weights, shape smollm2-135m"
    assert hello.model["name"] == "shape:smollm2-135m (random weights)"
    assert all(event.simulated for event in sink.events if isinstance(event, StepEvent))


def test_two_names_for_the_model_are_refused() -> None:
    with pytest.raises(ValueError, match="model 'tiny-random' and a config with model 'smollm2-135m'; name it once"):
        LLM(TINY, config=EngineConfig(dtype="float32"))
    llm = LLM(TINY, config=EngineConfig(model=TINY, dtype="float32"))
    assert llm.assembly.target.name == "tiny-random (random weights)"


def test_a_prompt_of_text_gets_the_start_token_that_the_model_expects() -> None:
    """As over HTTP: a rendered chat has its own, a bare prompt does not."""
    target = tiny_target()
    backend = tokenizers.Tokenizer.from_str(target.tokenizer._backend.to_str())
    backend.post_processor = TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    target = replace(target, tokenizer=Tokenizer(backend, target.tokenizer.eos_token_ids))
    llm = LLM(target, config=tiny_config({"spec": "off"}, draft_model="none"))
    [completion] = llm.generate(["the"], SamplingParams(max_tokens=1))
    assert completion.prompt_ids == target.tokenizer.encode("the", add_bos=True)
    assert completion.prompt_ids[0] == 0
    assert 0 not in llm.chat_ids("the")


def test_a_pool_that_no_memory_holds_is_an_option_to_change() -> None:
    """Not a reason to restart, which would only ask for as much again."""
    with pytest.raises(ValueError, match=r"no memory for a KV pool of 10{15} tokens; start with fewer --kv-tokens"):
        assemble(EngineConfig(model=TINY, dtype="float32", kv_tokens=10**15, page_size=10**12))

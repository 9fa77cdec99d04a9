"""The device worker out of start options, on the CPU: the same engine as the host's, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine import device_assembly
from engine.attention.backend import choose_backend
from engine.attention.torch_backend import TorchBackend
from engine.device.worker import DeviceWorker
from engine.host_worker import HostWorker
from engine.identity import hello_of
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from tests.engine.tiny import (
    CHAIN,
    STORY,
    eagle_engine,
    prompts,
    scripted_engine,
    tiny_config,
    tiny_draft,
    tiny_target,
    tokens,
)

PROMPTS = prompts(4)
SEEDED = [SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True, seed=seed) for seed in range(4)]


@pytest.mark.parametrize("knobs", [CHAIN, STORY], ids=["chain", "tree"])
def test_both_workers_keep_and_say_the_same_under_prescribed_acceptance(
    knobs: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greedy in float64: the text follows the drafts, so equal texts are equal trees, walks and draft states."""
    host, _ = eagle_engine(knobs, simulate_accept=2.6)
    device, _ = eagle_engine(knobs, simulate_accept=2.6, worker="device")
    monkeypatch.setattr(HostWorker, "even_widths", True)  # as the device worker asks for
    expected, got = host.generate(PROMPTS, SEEDED), device.generate(PROMPTS, SEEDED)
    assert tokens(got) == tokens(expected)
    assert [c.accept_length for c in got] == [c.accept_length for c in expected]


def test_it_says_what_runs_and_why() -> None:
    llm, _ = eagle_engine(CHAIN, worker="device", scheduler="overlap")
    which = hello_of(llm.assembly, "tiny", None, 1.0).which
    assert which["worker"]["defined"].startswith("engine/device/worker.py:")
    assert which["worker"]["why"] == "asked for"
    assert which["scheduler"]["value"] == "overlap"
    assert which["algorithm"]["value"] == "eagle3"
    assert which["attention"]["value"] == "torch"
    assert which["attention"]["defined"].startswith("engine/attention/torch_backend.py:")
    assert which["graphs"] == {
        "value": "none",
        "defined": "",
        "why": "the CPU has none: every step runs kernel by kernel",
    }
    assert "memory" not in which


def test_the_checkpoints_that_were_given_stay_whole() -> None:
    """The models empty what they load from: a copy."""
    target, draft = tiny_target(), tiny_draft()
    before = set(target.tensors), set(draft.tensors)
    LLM(target, draft=draft, config=tiny_config(worker="device"))
    assert (set(target.tensors), set(draft.tensors)) == before


def test_a_scripted_proposer_is_refused() -> None:
    with pytest.raises(ValueError, match="a proposer in Python runs on the host worker only"):
        scripted_engine({}, worker="device")


def test_attention_that_cannot_serve_is_refused_with_what_to_choose() -> None:
    """The interpreter, where tests run kernels in it, has no float64 either."""
    with pytest.raises(
        ValueError, match=r"--attention triton cannot serve 4/2 heads x 16 in float64 on cpu: .*start with"
    ):
        eagle_engine(CHAIN, worker="device", attention="triton")


def test_attention_that_plans_on_the_host_leaves_the_draft_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft's lengths are never on the host."""
    asked: list[str] = []

    class Planner(TorchBackend):
        name = "planner"
        needs_lengths = True

    def choose(name: str, *shape: Any) -> Any:
        asked.append(name)
        return (Planner(), "as asked") if name == "torch" else choose_backend("torch", *shape)

    monkeypatch.setattr(device_assembly, "choose_backend", choose)
    llm, _ = eagle_engine(CHAIN, worker="device", attention="torch", scheduler="overlap")
    assert asked == ["torch", "auto"]
    worker = llm.core.worker
    assert isinstance(worker, DeviceWorker)
    assert worker.parts.draft is not None
    assert (worker.parts.attention.name, worker.parts.draft.attention.name) == ("planner", "torch")
    which = hello_of(llm.assembly, "tiny", None, 1.0).which
    assert "the draft's nodes by torch" in which["attention"]["why"]
    assert "not after a verify" in which["scheduler"]["why"]


def test_without_a_draft_it_serves_plain() -> None:
    target = replace(tiny_target(), warnings=("as found",))
    llm = LLM(target, config=tiny_config({"spec": "off"}, draft_model="none", worker="device"))
    assert llm.assembly.warnings == ["as found"]
    assert hello_of(llm.assembly, "tiny", None, 1.0).which["algorithm"]["value"] == "none"
    [completion] = llm.generate([[1, 2, 3]], SEEDED[0])
    assert len(completion.token_ids) == 24

"""The threshold nobody chose."""

from __future__ import annotations

import pytest

from engine.assembly import assemble
from engine.config import Dtype, EngineConfig
from engine.models.linear import choose_arithmetic
from engine.spec import measured_threshold as module
from probes.knobs import Knobs
from tests.engine.tiny import tiny_draft, tiny_target


@pytest.mark.parametrize(
    ("dtype", "native", "matrix", "threshold"),
    [("bfloat16", True, True, 4), ("bfloat16", True, False, 2), ("bfloat16", False, False, 0)],
    ids=["AMX", "AVX512", "emulated"],
)
def test_bfloat16_pays_as_far_as_the_cpu_multiplies_it(
    dtype: Dtype, native: bool, matrix: bool, threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_native_bfloat16", lambda: native)
    monkeypatch.setattr(module, "has_matrix_bfloat16", lambda: matrix)
    assert module.measured_threshold(choose_arithmetic(dtype), "cpu", 16) == threshold


@pytest.mark.parametrize(("draft_tokens", "threshold"), [(16, 16), (4, 64), (64, 4), (300, 1)])
def test_a_gpu_speculates_up_to_so_many_tokens(draft_tokens: int, threshold: int) -> None:
    assert module.measured_threshold(choose_arithmetic("float32"), "cuda", draft_tokens) == threshold


@pytest.mark.parametrize(("measured", "threshold"), [(True, module.PAYS_UP_TO["float64"]), (False, 7)])
def test_it_replaces_the_knob_only_when_nobody_chose(measured: bool, threshold: int) -> None:
    config = EngineConfig(dtype="float64", knobs=Knobs(threshold=7, steps=1, topk=2, draft_tokens=3),
                          measured_threshold=measured)  # fmt: skip
    core = assemble(config, target=tiny_target(), draft=tiny_draft()).core
    assert (core.knobs.knobs.threshold, core.knobs.knobs.steps) == (threshold, 1)

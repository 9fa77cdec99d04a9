"""Fixtures of the engine's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from engine.kernels import dispatch
from tests.engine.tiny import VARIANT


@pytest.fixture(params=["sync", "overlap"])
def scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiny engines run under this scheduler; `tests.engine.tiny.both_schedulers` asks for it by module."""
    name: str = request.param
    monkeypatch.setitem(VARIANT, "scheduler", name)
    return name


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter is at hand, for tests that switch it on themselves.

    Skipped where kernels are compiled, for a GPU that tests/gpu compares them on, and where there is no Triton to
    install; anywhere else its absence is a fault of the installation.
    """
    if not dispatch.interpretable():
        if torch.cuda.is_available():
            pytest.skip("kernels are compiled here, not interpreted: tests/gpu compares those")
        if sys.platform != "linux":
            pytest.skip("there is no Triton for this system")
        pytest.fail("no Triton to interpret kernels with; `make test` installs it", pytrace=False)
    let_loaded_numbers_bound_a_loop(monkeypatch)


@pytest.fixture
def interpreted(interpreter: None) -> Iterator[None]:
    """CPU tensors take the Triton kernels, interpreted."""
    # numpy stands in for the GPU, which overflows without a word.
    with dispatch.interpret(), np.errstate(all="ignore"):
        yield


@pytest.fixture(params=["reference", "kernel"])
def implementation(request: pytest.FixtureRequest) -> None:
    """Both, one after the other."""
    if request.param == "kernel":
        request.getfixturevalue("interpreted")


def let_loaded_numbers_bound_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.6 keeps a scalar as an array of one element, which numpy 2.4 no longer takes for a number."""
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch_tensor_and_index(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor_and_index)

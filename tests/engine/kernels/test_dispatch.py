"""Which implementation a call takes."""

from __future__ import annotations

import pytest
import torch

from engine.kernels import dispatch


def test_a_cpu_tensor_takes_the_reference() -> None:
    assert not dispatch.use_triton(torch.zeros(1))


def test_a_cpu_tensor_takes_the_kernel_while_it_is_interpreted(interpreted: None) -> None:
    assert dispatch.use_triton(torch.zeros(1))


def test_the_reference_is_back_afterwards(interpreter: None) -> None:
    with dispatch.interpret(), dispatch.interpret():
        pass
    assert not dispatch.use_triton(torch.zeros(1))


def test_float64_never_takes_a_kernel(interpreted: None) -> None:
    assert not dispatch.use_triton(torch.zeros(1, dtype=torch.float64))


@pytest.mark.parametrize(("n", "power"), [(1, 1), (2, 2), (3, 4), (576, 1024), (4096, 4096)])
def test_next_power_of_2(n: int, power: int) -> None:
    assert dispatch.next_power_of_2(n) == power

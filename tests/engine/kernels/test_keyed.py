"""Keyed draws are those of the host worker, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.kernels.keyed import keyed_uniform, signed_seed
from engine.keyed_uniform import keyed_uniform as host_keyed_uniform
from tests.engine.kernels import comparisons

SEEDS = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15, 12345]
POSITIONS = [0, 1, 17, 127, 128, 2**31, 2**40]


def draws() -> torch.Tensor:
    seeds = torch.tensor([signed_seed(seed) for seed in SEEDS for _ in POSITIONS])
    return keyed_uniform(seeds, torch.tensor(POSITIONS * len(SEEDS)))


def host_draws() -> torch.Tensor:
    seeds = np.array([seed for seed in SEEDS for _ in POSITIONS], dtype=np.uint64)
    return torch.from_numpy(host_keyed_uniform(seeds, np.array(POSITIONS * len(SEEDS), dtype=np.uint64)))


def test_the_reference_draws_as_the_host_worker_does() -> None:
    assert torch.equal(draws(), host_draws())


def test_the_kernel_draws_as_the_host_worker_does(interpreted: None) -> None:
    assert torch.equal(draws(), host_draws())


@pytest.mark.parametrize("n", [1, 127, 300])
def test_the_kernel_equals_the_reference(interpreted: None, n: int) -> None:
    comparisons.keyed_draws(n, "cpu")


@pytest.mark.parametrize(("seed", "signed"), [(5, 5), (2**63, -(2**63)), (2**64 - 1, -1), (2**64 + 3, 3), (-1, -1)])
def test_seeds_are_taken_modulo_two_to_the_64(seed: int, signed: int) -> None:
    assert signed_seed(seed) == signed

"""The settle program's own arithmetic."""

from __future__ import annotations

import pytest
import torch

from engine.device.settle import _forced
from engine.device.state import DeviceState
from engine.kernels.keyed import signed_seed
from engine.spec.simulated_acceptance import forced_lengths


@pytest.mark.parametrize("accept", [1.0, 1.3, 2.6, 4.0])
def test_prescribed_acceptance_is_the_hosts(accept: float) -> None:
    """Both workers keep the same nodes: one draw, worked out in two places."""
    seeds, lengths = [0, 7, 2**63 + 5, 2**64 - 1] * 50, list(range(200))
    state = DeviceState(200, 2, 16, 0, 0, torch.device("cpu"), torch.float32, scrap_page=2)
    state.seeds[:200] = torch.tensor([signed_seed(seed) for seed in seeds])
    state.lens[:200] = torch.tensor(lengths, dtype=torch.int32)
    ours = _forced(state, torch.arange(200), accept, longest=8)
    assert ours.tolist() == forced_lengths(accept, seeds, lengths)

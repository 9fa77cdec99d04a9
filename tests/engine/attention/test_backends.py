"""What every backend gives, and which one is chosen."""

from __future__ import annotations

import pytest
import torch

from engine.attention.backend import AttentionBackend, choose_backend
from engine.attention.torch_backend import TorchBackend
from engine.attention.triton_backend import TritonBackend
from tests.engine.attention.cases import Heads, Pages, extend_case, node_case, verify_case

CPU = torch.device("cpu")
HEADS = Heads(6, 2, 16)


@pytest.fixture(params=["torch", "triton"])
def backend(request: pytest.FixtureRequest) -> AttentionBackend:
    if request.param == "triton":
        request.getfixturevalue("interpreted")
        return TritonBackend(CPU)
    return TorchBackend()


def test_verify(backend: AttentionBackend) -> None:
    case = verify_case(Pages(HEADS, [60, 20], 16), [50, 9], 4)
    out = backend.verify(case.q, case.pages.k, case.pages.v, case.batch)
    torch.testing.assert_close(out.double(), case.wanted, atol=2e-6, rtol=2e-5)


def test_draft_nodes(backend: AttentionBackend) -> None:
    case = node_case(Pages(HEADS, [60, 20], 16, scratch=12), [50, 9], 2, 6)
    out = backend.verify(case.q, case.pages.k, case.pages.v, case.batch)
    torch.testing.assert_close(out.double(), case.wanted, atol=2e-6, rtol=2e-5)


def test_extend(backend: AttentionBackend) -> None:
    case = extend_case(Pages(HEADS, [60, 20], 16), [(30, 20), (0, 9)])
    out = backend.extend(case.q, case.pages.k, case.pages.v, case.batch)
    torch.testing.assert_close(out.double(), case.wanted, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_torch_serves_every_dtype(dtype: torch.dtype) -> None:
    backend, _ = choose_backend("torch", 6, 2, 16, dtype, CPU)
    case = verify_case(Pages(HEADS, [60, 20], 16, dtype), [50, 9], 4)
    assert backend.verify(case.q, case.pages.k, case.pages.v, case.batch).dtype == dtype


def test_auto_is_torch_on_a_cpu() -> None:
    backend, why = choose_backend("auto", 32, 8, 128, torch.bfloat16, CPU)
    assert (backend.name, why) == ("torch", "the device is cpu")


def test_one_that_cannot_serve_says_what_can() -> None:
    with pytest.raises(
        ValueError, match=r"--attention flashinfer cannot serve 32/8 heads x 128 in bfloat16 on cpu: "
    ) as e:
        choose_backend("flashinfer", 32, 8, 128, torch.bfloat16, CPU)
    assert str(e.value).endswith("its kernels need a GPU; start with --attention torch or auto")


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (
            (4, 2, 48, torch.float32),
            "its kernels take head sizes 16, 32, 64, 128 and 256, in bfloat16, float16 or float32",
        ),
        (
            (4, 2, 64, torch.float64),
            "its kernels take head sizes 16, 32, 64, 128 and 256, in bfloat16, float16 or float32",
        ),
        ((4, 3, 64, torch.float32), "heads are no multiple of key heads"),
        ((4, 2, 64, torch.float32), "its kernels need a GPU"),
    ],
)
def test_why_triton_refuses(shape: tuple[int, int, int, torch.dtype], reason: str, interpreter: None) -> None:
    assert TritonBackend(CPU).refuses(*shape, CPU) == reason


def test_only_a_planner_needs_lengths() -> None:
    assert not TorchBackend.needs_lengths
    assert not TritonBackend.needs_lengths

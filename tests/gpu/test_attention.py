"""Every attention backend, compiled, beside a float64 softmax; and captured in a CUDA graph whose batch changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.attention.backend import AttentionBackend, ExtendBatch, VerifyBatch, choose_backend
from engine.attention.torch_backend import TorchBackend
from engine.config import Attention
from tests.engine.attention.cases import Extend, Heads, Pages, Verify, extend_case, node_case, tailed_case, verify_case

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA GPU", allow_module_level=True)

GPU = torch.device("cuda", 0)
LLAMA = Heads(32, 8, 128)
SHAPES = {
    "llama": LLAMA,
    "smol": Heads(9, 3, 64),
    "wide": Heads(8, 1, 256),
    "many": Heads(40, 8, 128),
    "single": Heads(4, 4, 128),
}
ERRORS = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 2e-6}
"""Of the whole output, relative: float32 far under what tf32 would give."""
SERVED = [(name, torch.bfloat16) for name in SHAPES] + [
    ("llama", torch.float16),
    ("llama", torch.float32),
    ("smol", torch.float32),
    ("wide", torch.float32),
]
"""Shapes in which dtypes: each is a compilation of its own."""
NAMES: tuple[Attention, ...] = ("triton", "torch", "flashinfer")


def made(name: Attention, heads: Heads, dtype: torch.dtype) -> AttentionBackend:
    """Skips where this one cannot serve the shape."""
    try:
        return choose_backend(name, heads.heads, heads.kv_heads, heads.dim, dtype, GPU)[0]
    except ValueError as error:
        pytest.skip(str(error))


def plan(backend: AttentionBackend, case: Verify, lengths: list[int], bound: int = 0) -> None:
    backend.plan(
        lengths,
        case.pages.table,
        width=case.batch.width,
        bucket=len(lengths),
        page_size=case.pages.page_size,
        bound=bound or case.batch.bound,
    )


def verified(backend: AttentionBackend, case: Verify, lengths: list[int]) -> torch.Tensor:
    plan(backend, case, lengths)
    return backend.verify(case.q, case.pages.k, case.pages.v, case.batch)


def precise(case: Verify | Extend) -> torch.Tensor:
    """The reference in float64 on the GPU, for sizes that the plain softmax is too slow for."""
    q, k, v = case.q.double(), case.pages.k.double(), case.pages.v.double()
    if isinstance(case, Verify):
        return TorchBackend().verify(q, k, v, case.batch)
    return TorchBackend().extend(q, k, v, case.batch)


def assert_near(out: torch.Tensor, wanted: torch.Tensor) -> None:
    wanted = wanted.to(out.device)
    assert torch.isfinite(out).all()
    error = float((out.double() - wanted).norm() / wanted.norm())
    assert error < ERRORS[out.dtype]


def mixed(requests: int, longest: int, seed: int = 0) -> list[int]:
    """Lengths from 0 to ``longest``, both included."""
    generator = torch.Generator().manual_seed(seed)
    lengths: list[int] = torch.randint(longest + 1, (requests,), generator=generator).tolist()
    lengths[0] = longest
    if requests > 1:
        lengths[1] = 0
    return lengths


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "dtype"), SERVED)
@pytest.mark.parametrize("width", [1, 4, 16])
def test_verify(name: Attention, shape: str, dtype: torch.dtype, width: int) -> None:
    heads = SHAPES[shape]
    backend = made(name, heads, dtype)
    lengths = mixed(5, 150)
    pages = Pages(heads, [length + width for length in lengths], 64, dtype, GPU)
    case = verify_case(pages, lengths, width, "tree" if width > 1 else "all")
    assert_near(verified(backend, case, lengths), case.wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("page_size", [16, 32, 256])
def test_page_sizes(name: Attention, page_size: int) -> None:
    backend, lengths = made(name, LLAMA, torch.bfloat16), [200, 31, 256]
    pages = Pages(LLAMA, [length + 4 for length in lengths], page_size, torch.bfloat16, GPU)
    case = verify_case(pages, lengths, 4)
    assert_near(verified(backend, case, lengths), case.wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("requests", [1, 16, 64, 250])
def test_batches(name: Attention, requests: int, width: int) -> None:
    backend, lengths = made(name, LLAMA, torch.bfloat16), mixed(requests, 400)
    pages = Pages(LLAMA, [length + width for length in lengths], 64, torch.bfloat16, GPU)
    case = verify_case(pages, lengths, width, "tree" if width > 1 else "all")
    assert_near(verified(backend, case, lengths), precise(case))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("lengths", [[6000], [5000, 90], [255, 256, 257, 8000]], ids=str)
def test_long_prefixes(name: Attention, dtype: torch.dtype, lengths: list[int]) -> None:
    backend = made(name, LLAMA, dtype)
    pages = Pages(LLAMA, [length + 4 for length in lengths], 64, dtype, GPU)
    case = verify_case(pages, lengths, 4)
    assert_near(verified(backend, case, lengths), precise(case))


def test_parts_are_merged_alike_each_time() -> None:
    """Whichever of them comes last, and with the counters that the call before left."""
    backend = made("triton", LLAMA, torch.bfloat16)
    pages = Pages(LLAMA, [8000, 3000], 64, torch.bfloat16, GPU)
    case = verify_case(pages, [7990, 2900], 4)
    first = backend.verify(case.q, case.pages.k, case.pages.v, case.batch)
    for _ in range(300):
        assert torch.equal(backend.verify(case.q, case.pages.k, case.pages.v, case.batch), first)


@pytest.mark.parametrize("name", ["triton", "torch"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("width", "tail"), [(1, 1), (4, 12), (8, 33), (8, 64)])
def test_draft_nodes(name: Attention, dtype: torch.dtype, width: int, tail: int) -> None:
    backend, lengths = made(name, LLAMA, dtype), mixed(6, 300)
    pages = Pages(LLAMA, [length + 1 for length in lengths], 64, dtype, GPU, scratch=6 * tail)
    case = node_case(pages, lengths, width, tail)
    assert_near(verified(backend, case, lengths), case.wanted)


@pytest.mark.parametrize("name", ["triton", "torch"])
def test_no_tail(name: Attention) -> None:
    backend, lengths = made(name, LLAMA, torch.bfloat16), [300, 1, 64]
    pages = Pages(LLAMA, [301, 2, 65], 64, torch.bfloat16, GPU)
    case = tailed_case(pages, lengths, [[]] * 3, [[0]] * 3, 1, masked=False)
    assert_near(verified(backend, case, lengths), case.wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "dtype"), SERVED)
def test_extend(name: Attention, shape: str, dtype: torch.dtype) -> None:
    heads = SHAPES[shape]
    backend = made(name, heads, dtype)
    spans = [(0, 130), (64, 64), (200, 1), (31, 77), (0, 3)]
    case = extend_case(Pages(heads, [sum(span) for span in spans], 64, dtype, GPU), spans)
    assert_near(backend.extend(case.q, case.pages.k, case.pages.v, case.batch), case.wanted)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("page_size", [16, 64, 256])
@pytest.mark.parametrize("spans", [[(0, 4096)], [(3000, 1000), (0, 128)], [(0, 128)] * 60], ids=["one", "two", "sixty"])
def test_extend_of_many_tokens(name: Attention, page_size: int, spans: list[tuple[int, int]]) -> None:
    backend = made(name, LLAMA, torch.bfloat16)
    case = extend_case(Pages(LLAMA, [sum(span) for span in spans], page_size, torch.bfloat16, GPU), spans)
    assert_near(backend.extend(case.q, case.pages.k, case.pages.v, case.batch), precise(case))


def test_extends_one_after_the_other() -> None:
    """A later plan must not write over what an earlier one still copies."""
    backend = made("flashinfer", LLAMA, torch.bfloat16)
    cases = [extend_case(Pages(LLAMA, [300], 64, torch.bfloat16, GPU, seed), [(seed, 40 + seed)]) for seed in range(20)]
    torch.cuda._sleep(100_000_000)  # the host is ahead of the device
    outs = [backend.extend(case.q, case.pages.k, case.pages.v, case.batch) for case in cases]
    for case, out in zip(cases, outs, strict=True):
        assert_near(out, precise(case))


def take_over(batch: VerifyBatch, other: VerifyBatch) -> None:
    """What a step may change in place between replays."""
    for name in ("rows", "pages", "lens", "tail_loc", "tail_mask"):
        mine, new = getattr(batch, name), getattr(other, name)
        if mine is not None:
            mine.copy_(new)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("requests", "width", "longest"), [(1, 1, 3000), (1, 4, 3000), (3, 16, 700), (70, 4, 300)])
def test_a_captured_verify_follows_its_batch(
    name: Attention, dtype: torch.dtype, requests: int, width: int, longest: int
) -> None:
    backend = made(name, LLAMA, dtype)
    bound = longest + width
    pages = Pages(LLAMA, [bound] * requests, 64, dtype, GPU)
    masks = "tree" if width > 1 else "all"
    lengths = [mixed(requests, most, seed) for seed, most in enumerate((longest, longest // 3, longest, 40))]
    cases = [verify_case(pages, those, width, masks, bound) for those in lengths]
    held, q = cases[0].batch, cases[0].q.clone()
    wanted = [precise(case) for case in cases]  # before the first one's batch is written over
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        plan(backend, cases[0], lengths[0], bound)
        backend.verify(q, pages.k, pages.v, held)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            out = backend.verify(q, pages.k, pages.v, held)
        for turn in (1, 2, 3, 1, 3):
            take_over(held, cases[turn].batch)
            q.copy_(cases[turn].q)
            out.fill_(float("nan"))
            plan(backend, cases[turn], lengths[turn], bound)
            graph.replay()
            assert_near(out, wanted[turn])


def test_replays_without_waiting_for_one_another() -> None:
    """Plans of several steps, the device far behind: each step must still see its own."""
    backend = made("flashinfer", LLAMA, torch.bfloat16)
    pages = Pages(LLAMA, [600] * 4, 64, torch.bfloat16, GPU)
    lengths = [[turn, 2 * turn, 300 + turn, 580 - turn] for turn in range(1, 9)]
    cases = [verify_case(pages, those, 4, bound=600) for those in lengths]
    wanted = [precise(case) for case in cases]
    outs = []
    torch.cuda._sleep(100_000_000)
    for case, those in zip(cases, lengths, strict=True):
        plan(backend, case, those, 600)
        outs.append(backend.verify(case.q, pages.k, pages.v, case.batch))
    for out, right in zip(outs, wanted, strict=True):
        assert_near(out, right)


@pytest.mark.parametrize("name", ["triton", "torch"])
def test_nothing_waits_for_the_device(name: Attention) -> None:
    """Neither verify nor, with what stands in the batch, extend reads anything back."""
    backend = made(name, LLAMA, torch.bfloat16)
    pages = Pages(LLAMA, [300, 80], 64, torch.bfloat16, GPU)
    verify, extend = verify_case(pages, [290, 70], 4), extend_case(pages, [(100, 150), (0, 80)])

    def both(batch: VerifyBatch, chunks: ExtendBatch) -> None:
        backend.verify(verify.q, pages.k, pages.v, batch)
        backend.extend(extend.q, pages.k, pages.v, chunks)

    both(verify.batch, extend.batch)  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        both(replace(verify.batch), replace(extend.batch))
    finally:
        torch.cuda.set_sync_debug_mode("default")

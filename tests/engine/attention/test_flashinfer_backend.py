"""What FlashInfer is handed: its functions are stood in for, by ones that read buffers as its kernels do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.attention.backend import VerifyBatch
from engine.attention.flashinfer_backend import FlashInferBackend
from tests.engine.attention.cases import Extend, Heads, Pages, Verify, attended, extend_case, verify_case

CPU = torch.device("cpu")
HEADS = Heads(6, 2, 16)
BOUND = 96


class Functions:
    """plan and paged_run of flashinfer-python 0.6.4, by the names of their arguments."""

    def __init__(self) -> None:
        self.plans: list[dict[str, Any]] = []
        self.launch = [1, 2, 3]

    def plan(
        self, partial: Any, plan: Any, pinned: Any, q_starts: Any, page_starts: Any, lengths: Any, *rest: Any
    ) -> Any:
        names = "rows requests heads kv_heads page_size for_graphs dim dim_v causal window split_size no_split others"
        self.plans.append(dict(zip(names.split(), rest, strict=True)))
        assert q_starts.dtype == page_starts.dtype == lengths.dtype == torch.int32
        return self.launch

    def paged_run(self, partial: Any, plan: Any, info: Any, q: Any, k: Any, v: Any, *rest: Any) -> None:
        names = (
            "q_starts page_starts pages last_page out lse mask_mode layout window early mask mask_starts alibi items0 "
            "items1 items2 cap scale scale_q scale_k scale_v rope_scale rope_theta items3 workspace"
        )
        given = dict(zip(names.split(), rest, strict=True))
        assert (given["layout"], given["window"], given["scale"]) == (0, -1, HEADS.dim**-0.5)
        size = k.shape[1]
        q_starts, starts, pages, last, out = (
            given[name] for name in ("q_starts", "page_starts", "pages", "last_page", "out")
        )
        seen: list[list[int]] = []
        for request in range(starts.numel() - 1):
            mine = pages[starts[request] : starts[request + 1]].tolist()
            slots = [page * size + at for page in mine for at in range(size)]
            slots = slots[: len(slots) - size + int(last[request])]
            width = int(q_starts[request + 1] - q_starts[request])
            for query in range(width):
                match given["mask_mode"]:
                    case 0:
                        keys = slots
                    case 1:
                        keys = slots[: len(slots) - width + query + 1]
                    case _:
                        at = [query * len(slots) + n for n in range(len(slots))]
                        begin = int(given["mask_starts"][request])
                        keys = [
                            slot
                            for bit, slot in zip(at, slots, strict=True)
                            if given["mask"][begin + bit // 8] >> bit % 8 & 1
                        ]
                seen.append(keys)
        flat = Pages(HEADS, [size], size)
        flat.k, flat.v = k.flatten(0, 1), v.flatten(0, 1)
        out.copy_(attended(flat, q, seen).view(q.shape))


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def backend(functions: Functions) -> FlashInferBackend:
    return FlashInferBackend(HEADS.heads, HEADS.kv_heads, HEADS.dim, torch.float32, CPU, functions)


def plan(backend: FlashInferBackend, case: Verify, lengths: list[int], bucket: int = 0) -> None:
    backend.plan(
        lengths,
        case.pages.table,
        width=case.batch.width,
        bucket=bucket or len(lengths),
        page_size=case.pages.page_size,
        bound=BOUND,
    )


def run(backend: FlashInferBackend, case: Verify) -> torch.Tensor:
    return backend.verify(case.q, case.pages.k, case.pages.v, case.batch)


def assert_same(out: torch.Tensor, case: Verify | Extend) -> None:
    torch.testing.assert_close(out.double(), case.wanted, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("masks", ["tree", "chain", "all"])
def test_verify(backend: FlashInferBackend, masks: str) -> None:
    case = verify_case(Pages(HEADS, [90, 20, 32], 16), [80, 9, 28], 4, masks)
    plan(backend, case, [80, 9, 28])
    assert_same(run(backend, case), case)


def test_decode_sees_all_its_keys(backend: FlashInferBackend) -> None:
    case = verify_case(Pages(HEADS, [90, 20], 16), [80, 15], 1, "all")
    plan(backend, case, [80, 15])
    assert_same(run(backend, case), case)


def test_a_later_plan_of_other_lengths(backend: FlashInferBackend) -> None:
    pages = Pages(HEADS, [90, 40], 16)
    for lengths in ([10, 3], [64, 33]):
        case = verify_case(pages, lengths, 3)
        plan(backend, case, lengths)
        assert_same(run(backend, case), case)


def test_masks_of_the_same_batch_are_packed_again_after_a_plan(backend: FlashInferBackend) -> None:
    case = verify_case(Pages(HEADS, [40], 16), [20], 3, "tree")
    plan(backend, case, [20])
    run(backend, case)
    assert case.batch.tail_mask is not None
    case.batch.tail_mask.fill_(0b111)
    prefix = case.pages.slots(0, 0, 23)
    case.seen[:] = [prefix] * 3
    plan(backend, case, [20])
    assert_same(run(backend, case), case)


def test_rows_that_only_pad(backend: FlashInferBackend) -> None:
    case = verify_case(Pages(HEADS, [40, 20], 16), [30, 9], 2)
    batch = case.batch
    assert batch.tail_mask is not None
    padded = VerifyBatch(
        rows=torch.cat([batch.rows, batch.rows[:1]]),
        width=2,
        pages=batch.pages,
        lens=batch.lens,
        page_size=16,
        tail_loc=torch.cat([batch.tail_loc, batch.tail_loc[:1]]),
        tail_mask=torch.cat([batch.tail_mask, batch.tail_mask[:1]]),
        bound=BOUND,
    )
    plan(backend, case, [30, 9], bucket=3)
    q = torch.cat([case.q, case.q[:2]])
    assert_same(backend.verify(q, case.pages.k, case.pages.v, padded)[:4], case)


def test_extend_is_planned_once_for_all_layers(backend: FlashInferBackend, functions: Functions) -> None:
    case = extend_case(Pages(HEADS, [60, 20], 16), [(30, 20), (0, 9)])
    for _ in range(3):
        assert_same(backend.extend(case.q, case.pages.k, case.pages.v, case.batch), case)
    assert [made["causal"] for made in functions.plans] == [True]


def test_extend_of_more_requests_than_before(backend: FlashInferBackend) -> None:
    for spans in ([(30, 20)], [(3, 5)] * 5):
        case = extend_case(Pages(HEADS, [sum(span) for span in spans], 16), spans)
        assert_same(backend.extend(case.q, case.pages.k, case.pages.v, case.batch), case)


def test_few_requests_are_split_as_for_graphs_and_many_not_at_all(
    backend: FlashInferBackend, functions: Functions
) -> None:
    for requests in (2, 8):  # the stand-in for a GPU has four multiprocessors
        case = verify_case(Pages(HEADS, [20] * requests, 16), [9] * requests, 1, "all")
        plan(backend, case, [9] * requests)
    assert [(made["for_graphs"], made["no_split"]) for made in functions.plans] == [(True, False), (False, True)]


def test_a_launch_that_changes_is_refused(backend: FlashInferBackend, functions: Functions) -> None:
    case = verify_case(Pages(HEADS, [20], 16), [9], 1, "all")
    plan(backend, case, [9])
    functions.launch = [1, 2, 4]
    with pytest.raises(RuntimeError, match="a graph cannot hold it"):
        plan(backend, case, [10])


def test_verify_without_a_plan_is_refused(backend: FlashInferBackend) -> None:
    case = verify_case(Pages(HEADS, [20], 16), [9], 2)
    with pytest.raises(RuntimeError, match="no plan for 1 requests x 2"):
        run(backend, case)


def test_a_request_longer_than_the_bound_is_refused(backend: FlashInferBackend) -> None:
    case = verify_case(Pages(HEADS, [120], 16), [110], 1, "all")
    with pytest.raises(ValueError, match="7 pages in use; the first plan's bound left room for 6"):
        plan(backend, case, [110])

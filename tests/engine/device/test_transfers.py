"""Copies between host and device: many pieces in one, arenas that come round."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.device.transfers import DEPTH, Downloads, Uploads

CPU = torch.device("cpu")


def test_pieces_come_out_as_they_went_in() -> None:
    uploads = Uploads(8, CPU)
    uploads.turn()
    ints = uploads.put([3, -(2**63), 2**63 - 1])
    floats = uploads.put_floats([0.1, 1e300])
    array = uploads.put(np.arange(50))  # more than the arena holds
    nothing = uploads.put([])
    uploads.send()
    assert uploads.take(ints).tolist() == [3, -(2**63), 2**63 - 1]
    assert uploads.take_floats(floats).tolist() == [0.1, 1e300]
    assert uploads.take(array).tolist() == list(range(50))
    assert uploads.take(nothing).shape == (0,)


def test_pieces_are_aligned_alike_whatever_lies_before_them() -> None:
    uploads = Uploads(64, CPU)
    uploads.turn()
    places = [uploads.put([1] * count) for count in (1, 2, 3, 1)]
    assert [place.start % 2 for place in places] == [0, 0, 0, 0]


def test_what_was_sent_is_apart_from_what_is_packed_next() -> None:
    uploads = Uploads(8, CPU)
    kept = []
    for step in range(2 * DEPTH):
        uploads.turn()
        place = uploads.put([step, step])
        uploads.send()
        kept.append(uploads.take(place))
    assert [piece.tolist() for piece in kept] == [[step, step] for step in range(2 * DEPTH)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float64])
def test_results_keep_their_shape_type_and_values(dtype: torch.dtype) -> None:
    downloads = Downloads(4, CPU)
    downloads.turn()
    small = torch.tensor([[1, 2, 3]]).to(dtype)
    large = torch.arange(60).view(12, 5).to(dtype)  # more than the arena holds
    first, second, empty = downloads.fetch(small), downloads.fetch(large), downloads.fetch(large[:0])
    assert torch.equal(first, small)
    assert torch.equal(second, large)
    assert empty.shape == (0, 5)


def test_results_stand_until_the_ring_has_come_round() -> None:
    downloads = Downloads(4, CPU)
    results = []
    for step in range(DEPTH):
        downloads.turn()
        results.append(downloads.fetch(torch.tensor([step])))
    assert [result.item() for result in results] == list(range(DEPTH))


def test_an_arena_is_taken_again_only_when_its_step_is_through() -> None:
    class Guard:
        waited = 0

        def synchronize(self) -> None:
            self.waited += 1

    uploads, guard = Uploads(4, CPU), Guard()
    uploads.turn()
    uploads.hold(guard)  # type: ignore[arg-type]
    for _ in range(DEPTH - 1):
        uploads.turn()
    assert guard.waited == 0
    uploads.turn()
    assert guard.waited == 1

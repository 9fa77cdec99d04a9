"""The replay ring's bounds and ranges."""

from __future__ import annotations

from probes.ring import ReplayRing


def filled(max_events: int, max_bytes: int, seqs: list[int], size: int = 10) -> ReplayRing:
    ring = ReplayRing(max_events, max_bytes)
    for seq in seqs:
        ring.append(seq, bytes(size))
    return ring


def test_bounded_by_count_and_by_bytes() -> None:
    assert (filled(5, 1000, list(range(1, 11))).first, len(filled(5, 1000, list(range(1, 11))))) == (6, 5)
    ring = filled(100, 35, list(range(1, 11)))
    assert (ring.first, len(ring), ring.size) == (8, 3, 30)


def test_payload_larger_than_the_ring_leaves_it_empty() -> None:
    ring = filled(5, 5, [1])
    assert (ring.first, ring.size) == (None, 0)
    assert ring.read(1, 1, 10, 10) == ([], 2)


def test_reads_in_batches_over_holes() -> None:
    ring = filled(100, 10_000, [1, 2, 5, 6, 7])
    found, following = ring.read(2, 6, 2, 10_000)
    assert ([seq for seq, _ in found], following) == ([2, 5], 6)
    found, following = ring.read(following, 6, 2, 10_000)
    assert ([seq for seq, _ in found], following) == ([6], 7)


def test_at_least_one_message_a_batch() -> None:
    found, following = filled(9, 10_000, [1, 2], size=500).read(1, 2, 10, 100)
    assert ([seq for seq, _ in found], following) == ([1], 2)

"""Sums of acceptance by knob epoch."""

from __future__ import annotations

import pytest

from tests.workbench import made_events as made
from workbench.tui.accept_epochs import KEPT, AcceptEpochs


def test_sums_and_ratios_of_an_epoch() -> None:
    epochs = AcceptEpochs()
    epochs.opened(0, made.T0, made.knobs())
    epochs.add(made.step(1, 4, correct_drafts=6, correct_by_position=[4, 2], proposed=60))
    epochs.add(made.step(2, 1, correct_drafts=0, correct_by_position=[], proposed=15))
    epochs.add(made.step(3, 9))  # plain
    epoch = epochs.current
    assert epoch is not None
    assert (epoch.steps, epoch.verifying_steps, epoch.verifies) == (3, 2, 5)
    assert epoch.accept_length == pytest.approx(1 + 6 / 5)
    assert epoch.accept_rate == pytest.approx(6 / 75)
    assert [epoch.reached(depth) for depth in range(4)] == [5, 4, 2, 0]
    assert epoch.tree == "2/4/16"
    assert (epoch.first_step, epoch.last_step) == (1, 3)


def test_nothing_verified_is_nothing_and_not_one() -> None:
    """B61."""
    epochs = AcceptEpochs()
    epochs.add(made.step(1, 9))
    assert epochs.current is not None
    assert epochs.current.accept_length is None
    assert epochs.current.accept_rate is None
    assert epochs.current.depth == 0


def test_a_change_opens_an_epoch_and_ends_the_one_before() -> None:
    epochs = AcceptEpochs()
    epochs.add(made.step(1, 3))
    epochs.opened(1, made.T0 + 9, made.knobs(threshold=8), "threshold 4 → 8")
    epochs.add(made.step(100, 3, knob_epoch=1))
    assert epochs.current is not None
    assert epochs.before is not None
    assert (epochs.current.number, epochs.before.number) == (1, 0)
    assert epochs.current.change == "threshold 4 → 8"
    assert epochs.before.end == made.T0 + 9
    epochs.add(made.step(101, 3, knob_epoch=0))
    assert epochs.before.steps == 2, "a step that ended after the change still belongs to its own epoch"


def test_a_change_that_was_not_seen_still_separates() -> None:
    epochs = AcceptEpochs()
    epochs.add(made.step(1, 3, knob_epoch=4))
    epochs.add(made.step(2, 3, knob_epoch=7))
    assert [epoch.number for epoch in epochs.epochs] == [4, 7]
    assert epochs.epochs[1].knobs == {}


def test_memory_is_bounded() -> None:
    """B104."""
    epochs = AcceptEpochs()
    for number in range(4 * KEPT):
        epochs.opened(number, made.T0 + number, made.knobs())
    assert len(epochs.epochs) == KEPT
    epochs.add(made.step(1, 3, knob_epoch=0))
    assert epochs.current is not None
    assert epochs.current.number == 4 * KEPT - 1

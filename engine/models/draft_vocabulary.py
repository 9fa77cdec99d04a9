"""The map from a head's reduced vocabulary to the target's ids, checked until no reading but one is left."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.models.checkpoint_error import CheckpointError

_ADVICE = "Fetch the head again, or write the map as EAGLE-3 does: d2t[i] = target id - i, ids rising."


def read_draft_vocabulary(
    source: str, d2t: Tensor | None, t2d: Tensor | None, draft_vocab: int, target_vocab: int
) -> Tensor:
    """int64 [draft_vocab] of absolute target ids, strictly increasing, from the offsets in ``d2t``.

    Without a map the vocabularies must be the same. B22: with a map of absolute ids in place of offsets everything
    runs and next to nothing is accepted, so that is recognised and refused.

    Raises:
        CheckpointError: naming d2t or t2d, and what was found.
    """
    if d2t is None:
        if draft_vocab == target_vocab:
            return torch.arange(target_vocab, dtype=torch.int64)
        raise CheckpointError(
            f"{source}: missing tensor d2t: lm_head.weight has {draft_vocab} rows, the target {target_vocab} tokens, "
            f"so a map is needed. {_ADVICE}"
        )
    if d2t.dtype.is_floating_point or d2t.dtype == torch.bool:
        raise CheckpointError(f"{source}: tensor d2t is of type {d2t.dtype}, expected whole numbers. {_ADVICE}")
    if tuple(d2t.shape) != (draft_vocab,):
        raise CheckpointError(
            f"{source}: tensor d2t: found shape {list(d2t.shape)}, expected [{draft_vocab}] like the rows of "
            f"lm_head.weight. {_ADVICE}"
        )
    stored = d2t.to(torch.int64)
    offsets_read = stored + torch.arange(draft_vocab, dtype=torch.int64)  # [draft_vocab]
    listed = _listed(source, t2d, draft_vocab)
    if listed is not None:
        # t2d marks the very ids, so it settles what d2t means.
        if torch.equal(offsets_read, listed):
            return offsets_read
        if torch.equal(stored, listed):
            raise _absolute(source, "they are the ids that t2d marks")
        wrong = int((offsets_read != listed).nonzero()[0])
        raise CheckpointError(
            f"{source}: tensors d2t and t2d contradict each other: draft id {wrong} is target id "
            f"{int(offsets_read[wrong])} by d2t and {int(listed[wrong])} by t2d. {_ADVICE}"
        )
    # Of offsets, rising ids mean only that none falls, and neighbours in both vocabularies share one; a list that rises
    # at every step is one of ids. (A true map without a single pair of neighbours is refused too: t2d would tell.)
    if draft_vocab > 1 and bool((stored.diff() > 0).all()):
        raise _absolute(source, "they rise at every step")
    outside = ((offsets_read < 0) | (offsets_read >= target_vocab)).nonzero()
    if outside.numel():
        wrong = int(outside[0])
        raise CheckpointError(
            f"{source}: tensor d2t: draft id {wrong} becomes target id {int(offsets_read[wrong])}, expected 0 to "
            f"{target_vocab - 1}. {_ADVICE}"
        )
    if bool((offsets_read.diff() <= 0).any()):
        wrong = int((offsets_read.diff() <= 0).nonzero()[0]) + 1
        raise CheckpointError(
            f"{source}: tensor d2t: target ids do not rise at draft id {wrong} ({int(offsets_read[wrong - 1])}, then "
            f"{int(offsets_read[wrong])}). {_ADVICE}"
        )
    return offsets_read


def _listed(source: str, t2d: Tensor | None, draft_vocab: int) -> Tensor | None:
    """Target ids that t2d marks, rising."""
    if t2d is None:
        return None
    listed = t2d.to(torch.bool).nonzero().flatten()
    if listed.numel() != draft_vocab:
        raise CheckpointError(
            f"{source}: tensor t2d marks {listed.numel()} target ids, expected {draft_vocab} like the rows of "
            f"lm_head.weight. {_ADVICE}"
        )
    return listed


def _absolute(source: str, sign: str) -> CheckpointError:
    return CheckpointError(
        f"{source}: tensor d2t holds absolute target ids ({sign}), expected offsets: d2t[i] = target id - i. "
        "Subtract 0, 1, 2, ... from it, or fetch a head whose map is written that way."
    )

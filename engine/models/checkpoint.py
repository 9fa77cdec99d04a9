"""A model as it came from its files: numbers, tensors and text handling, whatever the format was."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from engine.models import catalog
from engine.models.checkpoint_error import CheckpointError, NoBuiltInDraft
from engine.models.named_shapes import SHAPES, NamedShape
from engine.models.shapes import Eagle3Shape, LlamaShape
from engine.models.target_files import find_target
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TargetCheckpoint:
    """A Llama-architecture model."""

    name: str
    source: str
    """Where it came from, for people."""
    shape: LlamaShape
    tensors: MutableMapping[str, Tensor]
    """Hugging Face names without the leading ``model.``; q and k rows in half-split rotary order; the file's dtype.
    ``lm_head.weight`` only when it is not the embedding."""
    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    warnings: tuple[str, ...] = ()
    """What a person should know although the model can be used."""

    def chat_ids(self, user: str) -> list[int]:
        """Token ids of one user turn in the model's chat template.

        Raises:
            ValueError: the model has no chat template, or it refuses the turn.
        """
        if self.chat_template is None:
            raise ValueError(f"model {self.name} has no chat template; give a prompt instead")
        return self.tokenizer.encode(self.chat_template.render([{"role": "user", "content": user}]))


@dataclass(frozen=True, kw_only=True)
class DraftCheckpoint:
    """An EAGLE-3 head of one layer."""

    name: str
    source: str
    shape: Eagle3Shape
    tensors: MutableMapping[str, Tensor]
    """``fc.weight``, ``layers.0.*``, ``norm.weight``, ``lm_head.weight``, and ``embed_tokens.weight`` if it has one."""
    draft_to_target: Tensor
    """int64 [draft_vocab]: the target's id of each draft id, absolute, strictly increasing."""
    warnings: tuple[str, ...] = ()


def load_target(
    name_or_dir: str, *, dtype: torch.dtype = torch.float32, device: torch.device | None = None
) -> TargetCheckpoint:
    """Load a built-in model by name, a directory in Hugging Face layout, or a ``.gguf`` file.

    ``dtype`` and ``device`` are those of the weights of a named shape, which are made in place; what lies in files
    comes as it lies there, on the CPU.

    Raises:
        CheckpointError: unknown name, not fetched, another architecture, tensors that do not fit.
    """
    found = find_target(name_or_dir)
    if isinstance(found, NamedShape):
        from engine.models.shape_checkpoint import shape_target

        return shape_target(found, dtype, device or torch.device("cpu"))
    if isinstance(found, catalog.RandomModel):
        from engine.models.random_checkpoint import built_in_random_target

        return built_in_random_target(found)
    if found.is_dir():
        from engine.models.hf_checkpoint import load_hf_directory

        return load_hf_directory(found)
    from engine.models.gguf_checkpoint import load_gguf

    return load_gguf(found, name=name_or_dir if name_or_dir in catalog.TARGETS else found.stem)


def load_draft(
    name_or_dir: str,
    target: TargetCheckpoint,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> DraftCheckpoint:
    """Load an EAGLE-3 head for ``target``: a built-in name, a directory, or ``auto`` for the built-in target's own.

    ``dtype`` and ``device`` are as for `load_target`.

    Raises:
        NoBuiltInDraft: ``auto`` for a target without a built-in head.
        CheckpointError: unknown name, or a head that is damaged or does not fit.
    """
    from engine.models.eagle3_checkpoint import load_eagle3_directory

    if name_or_dir == "auto":
        named = next((named for named in SHAPES.values() if target.name == named.title), None)
        if named is not None:
            from engine.models.shape_checkpoint import shape_draft

            return shape_draft(named, dtype, device or torch.device("cpu"))
        # A random model shows its title as its name, so that no one takes it for a real one.
        built_in = next((model for model in catalog.TARGETS.values() if target.name in (model.name, model.title)), None)
        if built_in is None or built_in.draft is None:
            raise NoBuiltInDraft(
                f"draft model: none is built in for {target.name}. Give one with --draft-model DIRECTORY, "
                "or --draft-model none to serve without speculation."
            )
        name_or_dir = built_in.draft
    head = catalog.DRAFTS.get(name_or_dir)
    if isinstance(head, catalog.RandomHead):
        from engine.models.random_checkpoint import built_in_random_draft

        return built_in_random_draft(head, target)
    if head is not None:
        return load_eagle3_directory(head.path(), target, name=head.name)
    path = Path(name_or_dir).expanduser()
    if path.is_dir():
        return load_eagle3_directory(path, target)
    raise CheckpointError(
        f"draft model {name_or_dir!r}: neither a built-in name nor a directory. Built in: {', '.join(catalog.DRAFTS)}; "
        "else give a directory with config.json and model.safetensors of an EAGLE-3 head."
    )

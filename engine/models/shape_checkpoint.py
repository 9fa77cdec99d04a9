"""A model of a named shape with random weights, made where it runs and tensor by tensor, when each is asked for.

Eight billion numbers then take a second on a GPU, and are never there twice. Nobody can read what such a model says; it
takes as long as a real one to say it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from engine.models.byte_tokenizer import CHAT_TEMPLATE, EOS_ID, byte_tokenizer
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.named_shapes import NamedShape
from engine.models.random_checkpoint import LOGIT_SPREAD
from engine.models.tensor_check import Dims, draft_tensors, target_tensors
from engine.text.chat_template import ChatTemplate

_DRAFT_SEED = 1


class RandomTensors(MutableMapping[str, Tensor]):
    """Name -> a tensor that is made when it is asked for, the same each time.

    Its numbers follow from seed, name, dtype and kind of device. One that somebody still holds is handed out again.
    Names can be taken out, as a loader does that empties a checkpoint while it reads it.
    """

    def __init__(
        self, dims: Mapping[str, Dims], *, seed: int, dtype: torch.dtype, device: torch.device, tied: bool = False
    ) -> None:
        """``tied``: the embedding is the output layer too, and scaled as one."""
        self.dims = dict(dims)
        self.dtype = dtype
        self.device = device
        self._seed = seed
        self._tied = tied
        self._alive: WeakValueDictionary[str, Tensor] = WeakValueDictionary()

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._alive.get(name)
        if tensor is None:
            tensor = self._alive[name] = self._make(name, self.dims[name])
        return tensor

    def __setitem__(self, name: str, tensor: Tensor) -> None:
        raise TypeError(f"{name}: random tensors are made here, not put in")

    def __delitem__(self, name: str) -> None:
        del self.dims[name]

    def __copy__(self) -> RandomTensors:
        return RandomTensors(self.dims, seed=self._seed, dtype=self.dtype, device=self.device, tied=self._tied)

    def __iter__(self) -> Iterator[str]:
        return iter(self.dims)

    def __len__(self) -> int:
        return len(self.dims)

    def _make(self, name: str, dims: Dims) -> Tensor:
        """Scaled so that every layer adds a noticeable part to the residual stream, and logits spread alike."""
        own_seed = zlib.crc32(f"{self._seed} {name}".encode())  # torch's generator on the CPU takes 32 bits of a seed
        generator = torch.Generator(self.device).manual_seed(own_seed)
        noise = torch.randn(dims, generator=generator, dtype=self.dtype, device=self.device)
        if len(dims) == 1:
            return noise.mul_(0.1).add_(1.0)  # a norm's weight: near one, but wrong if left out
        if name == "embed_tokens.weight":
            return noise.mul_(LOGIT_SPREAD / math.sqrt(dims[1])) if self._tied else noise
        scale = LOGIT_SPREAD if name == "lm_head.weight" else 1.0
        return noise.mul_(scale / math.sqrt(dims[1]))


def shape_target(named: NamedShape, dtype: torch.dtype, device: torch.device) -> TargetCheckpoint:
    """The target; a byte tokenizer of as many tokens stands in for the real one."""
    shape = replace(named.shape, eos_token_ids=(EOS_ID,))
    return TargetCheckpoint(
        name=named.title,
        source=f"random weights, seed {named.seed}, of the sizes that this model has; a byte tokenizer stands in",
        shape=shape,
        tensors=RandomTensors(
            target_tensors(shape), seed=named.seed, dtype=dtype, device=device, tied=shape.tie_embeddings
        ),
        tokenizer=byte_tokenizer(shape.vocab_size, shape.eos_token_ids, named_rest=True),
        chat_template=ChatTemplate(CHAT_TEMPLATE),
    )


def shape_draft(named: NamedShape, dtype: torch.dtype, device: torch.device) -> DraftCheckpoint:
    """An EAGLE-3 head of one layer that goes with the target. It knows random ids, and is right by chance only."""
    shape = named.head_shape
    generator = torch.Generator().manual_seed(named.seed + _DRAFT_SEED)
    return DraftCheckpoint(
        name=named.head_name,
        source=f"random weights, seed {named.seed + _DRAFT_SEED}",
        shape=shape,
        tensors=RandomTensors(
            draft_tensors(shape, own_embedding=False), seed=named.seed + _DRAFT_SEED, dtype=dtype, device=device
        ),
        draft_to_target=torch.randperm(shape.vocab_size, generator=generator)[: shape.draft_vocab_size].sort().values,
    )

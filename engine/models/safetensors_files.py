"""Tensors out of a directory in Hugging Face layout."""

from __future__ import annotations

from pathlib import Path

import safetensors
import torch

from engine.models.checkpoint_error import CheckpointError
from engine.models.json_file import read_json


def read_tensors(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of ``model.safetensors``, of the files that an index lists, or of the only other file there is.

    Raises:
        CheckpointError: no such file, a listed one missing, one that is damaged, or a tensor that is in two files.
    """
    tensors: dict[str, torch.Tensor] = {}
    for path in _files(directory):
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a dict
                    if name in tensors:
                        raise CheckpointError(f"{directory}: tensor {name} is in two files. Remove the older one.")
                    tensors[name] = file.get_tensor(name)
        except (safetensors.SafetensorError, OSError) as error:
            raise CheckpointError(f"{path}: cannot be read as safetensors ({error}). Fetch it again.") from error
    return tensors


def _files(directory: Path) -> list[Path]:
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise CheckpointError(f"{index}: has no weight_map. Fetch it again.")
        files = [directory / name for name in sorted({str(name) for name in weight_map.values()})]
        missing = [path.name for path in files if not path.is_file()]
        if missing:
            raise CheckpointError(f"{directory}: {', '.join(missing)} missing although the index lists them.")
        return files
    single = directory / "model.safetensors"
    if single.is_file():
        return [single]
    found = sorted(directory.glob("*.safetensors"))
    if len(found) == 1:
        return found
    if found:
        raise CheckpointError(
            f"{directory}: {len(found)} .safetensors files and no model.safetensors.index.json to say which belong."
        )
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in directory.glob(pattern))
    advice = f"Found {', '.join(pickled)}: convert it to safetensors." if pickled else "Copy the weights there."
    raise CheckpointError(f"{directory}: no .safetensors file, expected model.safetensors or an index. {advice}")

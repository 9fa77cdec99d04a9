"""What ``--model`` means: a built-in name, a named shape, a directory, or a GGUF file, checked to be there."""

from __future__ import annotations

from pathlib import Path

from engine.models import catalog
from engine.models.checkpoint_error import CheckpointError
from engine.models.named_shapes import SHAPES, NamedShape
from probes.simulation import SHAPE


def find_target(name_or_dir: str) -> catalog.RandomModel | NamedShape | Path:
    """The built-in random model or the shape of that name, or the path of a ``.gguf`` file or of a directory.

    Raises:
        CheckpointError: unknown name, or not fetched.
    """
    if name_or_dir.startswith(SHAPE):
        if name_or_dir not in SHAPES:
            raise CheckpointError(f"model {name_or_dir!r}: no such shape. There are {', '.join(SHAPES)}.")
        return SHAPES[name_or_dir]
    built_in = catalog.TARGETS.get(name_or_dir)
    if isinstance(built_in, catalog.RandomModel):
        return built_in
    if built_in is not None:
        if not built_in.is_fetched:
            raise CheckpointError(
                f"model {built_in.name}: {built_in.path()} is not there or incomplete, expected {built_in.file_bytes} "
                f"bytes. Run: specwb models fetch {built_in.name}"
            )
        return built_in.path()
    path = Path(name_or_dir).expanduser()
    if path.is_dir() or (path.is_file() and path.suffix == ".gguf"):
        return path
    raise CheckpointError(
        f"model {name_or_dir!r}: neither a built-in name nor a directory. Built in: {', '.join(catalog.TARGETS)}; "
        "else give a directory with config.json, *.safetensors and tokenizer.json, or a .gguf file."
    )

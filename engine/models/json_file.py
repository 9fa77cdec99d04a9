"""JSON settings beside a model's weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.models.checkpoint_error import CheckpointError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: when the file is not there, or holds no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.parent}: {path.name} is missing. Copy all files of the model there.") from error
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error}). Fetch it again.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: holds a {type(content).__name__}, expected a JSON object. Fetch it again.")
    return content

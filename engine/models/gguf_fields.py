"""The key-value fields of a GGUF file: what describes the model, its tokenizer and chat template included.

No torch here: the server process reads its text side through this.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from engine.models.checkpoint_error import CheckpointError
from engine.text.chat_template import ChatTemplate, ChatTemplateError


def read_gguf(path: Path) -> gguf.GGUFReader:
    """Open a file and read its fields and the list of its tensors; weights stay on disk.

    Raises:
        CheckpointError: no GGUF, or a damaged one.
    """
    try:
        return _Reader(path)
    except (ValueError, KeyError, IndexError, OverflowError, struct.error) as error:
        raise CheckpointError(f"{path.name}: not a GGUF file that can be read ({error}). Fetch it again.") from error


class Fields:
    """Typed access to a GGUF's key-value fields; every error names the field."""

    def __init__(self, source: str, reader: gguf.GGUFReader) -> None:
        self.source = source
        self._fields = reader.fields

    def get(self, key: str, default: Any = None) -> Any:
        """A scalar or a list; ``default`` where the field is absent."""
        field = self._fields.get(key)
        if field is None:
            return default
        try:
            return field.contents()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.source}: field {key} is no text ({error}). Fetch the file again.") from error

    def need(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise CheckpointError(f"{self.source}: field {key} is missing. Convert the model to GGUF again.")
        return value

    def text(self, key: str) -> str:
        return str(self.need(key))

    def number(self, key: str) -> int:
        value = self.need(key)
        if not isinstance(value, int):
            raise CheckpointError(f"{self.source}: field {key} is {value!r}, expected one whole number.")
        return value

    def strings(self, key: str) -> list[str]:
        """A long list of strings, without the library's generic decoder."""
        field = self._fields.get(key)
        if field is None:
            raise CheckpointError(f"{self.source}: field {key} is missing. Convert the model to GGUF again.")
        return [bytes(field.parts[index]).decode("utf-8", errors="replace") for index in field.data]


def read_chat_template(fields: Fields) -> ChatTemplate | None:
    """The file's own chat template; None when it has none.

    Raises:
        CheckpointError: it does not compile.
    """
    source = fields.get("tokenizer.chat_template")
    if source is None:
        return None
    tokens = fields.strings("tokenizer.ggml.tokens")

    def token(key: str) -> str:
        index = fields.get(key)
        return tokens[index] if isinstance(index, int) and 0 <= index < len(tokens) else ""

    try:
        return ChatTemplate(
            source,
            bos_token=token("tokenizer.ggml.bos_token_id"),
            eos_token=token("tokenizer.ggml.eos_token_id"),
        )
    except ChatTemplateError as error:
        raise CheckpointError(f"{fields.source}: tokenizer.chat_template: {error}") from error


class _Reader(gguf.GGUFReader):
    """The library's reader, quicker on arrays: over a vocabulary it spends seconds, nearly all in memmap slices."""

    def _get_field_parts(
        self, orig_offs: int, raw_type: int, *args: Any, **kwargs: Any
    ) -> tuple[int, list[npt.NDArray[Any]], list[int], list[gguf.GGUFValueType]]:
        array, string = gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.STRING
        item = int(self._get(orig_offs, np.uint32)[0]) if raw_type == array else None
        item_dtype = self.gguf_scalar_to_np.get(gguf.GGUFValueType(item)) if item is not None else None
        if item is None or self.byte_order != "I" or (item != string and item_dtype is None):
            return super()._get_field_parts(orig_offs, raw_type, *args, **kwargs)
        plain = np.asarray(self.data)
        raw = plain.data
        (count,) = struct.unpack_from("=Q", raw, orig_offs + 4)
        parts: list[npt.NDArray[Any]] = [plain[orig_offs : orig_offs + 4], plain[orig_offs + 4 : orig_offs + 12]]
        offset = orig_offs + 12
        if item_dtype is not None:
            values = np.frombuffer(raw, dtype=item_dtype, count=count, offset=offset)
            parts += [values[index : index + 1] for index in range(count)]
            offset += values.nbytes
        else:
            for _ in range(count):
                (length,) = struct.unpack_from("=Q", raw, offset)
                offset += 8
                parts.append(plain[offset : offset + length])
                offset += length
        types = [array, gguf.GGUFValueType(item)] if count else [array]
        return offset - orig_offs, parts, list(range(2, len(parts))), types

"""Typed reading of a JSON object's fields: null means absent, and a wrong type is a 400 that names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from engine.server.api_error import ApiError, bad_field

T = TypeVar("T")

SHOWN_CHARS = 60


def shown(value: object) -> str:
    """A value for an error message, in JSON's own words, cut to a readable length."""
    try:
        text = msgspec.json.encode(value).decode()
    except (OverflowError, ValueError):
        return "a number of more than 64 bits"
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


class Fields:
    """One JSON object of a request. ``prefix`` says where it stands (``messages[0].``) in error messages."""

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self.values = values
        self.prefix = prefix

    @classmethod
    def decode(cls, body: bytes) -> Fields:
        """Parse a request's body.

        Raises:
            ApiError: 400 when it is not a JSON object.
        """
        try:
            values = msgspec.json.decode(body)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            raise ApiError(400, f"the body is not valid JSON: {error}", code="invalid_json") from None
        if not isinstance(values, dict):
            raise ApiError(400, f"the body must be a JSON object, got {shown(values)}", code="invalid_json")
        return cls(values)

    def path(self, name: str) -> str:
        return self.prefix + name

    def raw(self, name: str) -> Any:
        """The value as it came; None when absent or null."""
        return self.values.get(name)

    def wrong(self, name: str, expected: str) -> ApiError:
        """The 400 for a value of the wrong type or range."""
        return bad_field(self.path(name), f"got {shown(self.raw(name))}, expected {expected}")

    def _read(self, name: str, default: T, accepts: Callable[[Any], bool], expected: str) -> T:
        value = self.raw(name)
        if value is None:
            return default
        if not accepts(value):
            raise self.wrong(name, expected)
        return value  # type: ignore[no-any-return]

    def boolean(self, name: str, default: bool = False) -> bool:
        return self._read(name, default, lambda value: isinstance(value, bool), "true or false")

    def string(self, name: str, default: str | None = None) -> str | None:
        return self._read(name, default, lambda value: isinstance(value, str), "a string")

    def integer(self, name: str, low: int, high: int | None = None) -> int | None:
        """A whole number in a range, or None when absent; true and 5.0 are not whole numbers."""
        expected = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"

        def accepts(value: Any) -> bool:
            return is_integer(value) and low <= value and (high is None or value <= high)

        return self._read(name, None, accepts, expected)

    def number(self, name: str, default: float) -> float:
        return float(self._read(name, default, lambda value: is_integer(value) or isinstance(value, float), "a number"))

    def object(self, name: str) -> Fields | None:
        """A nested object, or None when absent."""
        value: dict[str, Any] | None = self._read(name, None, lambda value: isinstance(value, dict), "an object")
        return None if value is None else Fields(value, f"{self.path(name)}.")

    def array(self, name: str) -> list[Any] | None:
        return self._read(name, None, lambda value: isinstance(value, list), "an array")


def is_integer(value: object) -> bool:
    """JSON's whole numbers, of at most 64 bits; bool is a subclass of int in Python, not in JSON."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64

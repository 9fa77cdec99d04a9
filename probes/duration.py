"""Lengths of time as people write and read them: ``90s``, ``15m``, ``1h30m``."""

from __future__ import annotations

import re

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
EXAMPLES = "90s, 15m, 2h or 1h30m"


def parse_duration(text: str) -> float:
    """Seconds of a length of time in days, hours, minutes and seconds, largest unit first.

    Raises:
        ValueError: not one; says what is expected.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is not a length of time; expected one like {EXAMPLES}")
    return sum(float(number) * unit for number, unit in zip(found.groups(), _UNITS.values(), strict=True) if number)


def parse_seconds(text: str) -> float:
    """The same, where a bare number is seconds: ``90``, ``90s``, ``1m30s``.

    Raises:
        ValueError: not one; says what is expected.
    """
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_duration(text)


def duration_text(seconds: float) -> str:
    """``45 s``, ``13 min``, ``1 h 30 min``, ``2 d 4 h``: as exact as a person needs it."""
    whole = round(max(0.0, seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    return f"{days} d" + (f" {hours} h" if hours else "")

"""How large a recording is, in words."""

from __future__ import annotations


def size_text(size: int) -> str:
    """``640 kB``, ``1.2 MB``, ``3.4 GB``."""
    if size < 1_000_000:
        return f"{size / 1000:.0f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"

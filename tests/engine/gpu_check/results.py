"""Results files as a check would have written them."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.gpu_check.bars import CLIENTS
from engine.gpu_check.check_file import Cell, CheckFile
from engine.gpu_check.sizes import FULL

RATES = {
    "plain": (210.0, 3000.0, 9000.0, 13100.0, 15600.0),
    "off": (209.0, 2990.0, 8990.0, 13000.0, 15500.0),
    "eagle3": (440.0, 5600.0, 11900.0, 14100.0, 15100.0),
    "dynamic": (439.0, 5590.0, 8980.0, 12990.0, 15490.0),
}


def column(rate: float, **more: Any) -> dict[str, Any]:
    """What `Side.column` gives."""
    return {
        "rate": rate,
        "rates": [rate],
        "accept": None,
        "idle": 0.01,
        "gpu_us": {"run": 90, "accept": 9, "idle": 1},
        "cpu_us": {},
        **more,
    }


def pair(first: dict[str, Any], second: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What `sweep.compare` gives."""
    ratio = first["rate"] / second["rate"]
    interval = {"median": ratio, "low": ratio - 0.01, "high": ratio + 0.01, "pairs": 7}
    return {"ratio": interval, "first": first, "second": second, **more}


def full_results() -> CheckFile:
    """A check that is over and reached every bar."""
    cells: dict[str, Any] = {}
    rates = {name: dict(zip(CLIENTS, each, strict=True)) for name, each in RATES.items()}
    for n in CLIENTS:
        plain, off, eagle3, dynamic = (column(rates[name][n]) for name in ("plain", "off", "eagle3", "dynamic"))
        cells[f"sweep/{n}/off over plain"] = pair(off, plain)
        if n > 32:
            cells[f"sweep/{n}/eagle3"] = eagle3
        chosen = "eagle3" if n <= 32 else "off"
        cells[f"sweep/{n}/threshold over chosen"] = pair(dynamic, eagle3 if n <= 32 else off, chosen=chosen)
        # 128 tokens each, of which the prefill gives the first: a floor 4% above the rate
        seconds = n * 128 / (rates["plain"][n] * 1.04)
        cells[f"floor/prefill/{n}"] = {"ms": 0.0}
        cells[f"floor/step/{n}x1"] = {"ms": seconds * 1e3 / 127, "attention": "triton"}
        cells[f"floor/step/{n}x4"] = {"ms": seconds * 1e3 / 100, "attention": "triton"}
    for name, dtype in (("bfloat16 overlap, off", "bfloat16"), ("float32 sync, off", "float32")):
        cells[f"exact/{name}"] = {
            "dtype": dtype,
            "positions": 2048,
            "excused": 20,
            "decided": 0,
            "complete": True,
            "widest_gap": 0.0004,
        }
    cells["probe/250"] = pair(column(15590.0), column(15600.0))
    cells["sanitizer/graphs"] = {"errors": 0, "words": []}
    cells["tests/test_engine"] = {"passed": 40, "failed": 0, "skipped": 1, "failures": [], "skips": []}
    cells["own/chain of 3/8"] = pair(column(900.0, accept=2.1), column(1000.0))
    return CheckFile(
        machine={"card": "a card", "driver": "1.2", "torch": "2.11.0", "python": "3.12.3"},
        sizes=msgspec.to_builtins(FULL),
        cells={name: Cell(value=value, at="2026-11-30T10:00:00+00:00", run="r") for name, value in cells.items()},
    )

"""The stages of a check, most valuable first: what is wrong shows before what is slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.gpu_check import (
    exactness,
    floor,
    gpu_tests,
    kernel_profile,
    kernel_times,
    own_acceptance,
    probe_cost,
    sanitizer,
    sweep,
    tile_search,
)
from engine.gpu_check.session import Session


@dataclass(frozen=True)
class Stage:
    """A group of cells; its name begins theirs."""

    name: str
    run: Callable[[Session], None]
    does: str


STAGES = (
    Stage(
        "smoke", exactness.run_smoke, "a tiny model says what the CPU says: both schedulers, switching, graphs or none"
    ),
    Stage("tests", gpu_tests.run, "every test in tests/gpu"),
    Stage("floor", floor.run, "what the card allows: matrix products, attention and norms, nothing else"),
    Stage("sweep", sweep.run, "output tokens/s: plain, EAGLE-3, threshold, head loaded but off"),
    Stage("exact", exactness.run, "the default model against the CPU in float32, switched before every step too"),
    Stage("probe", probe_cost.run, "all topics watched against nobody watching"),
    Stage("shapes", sweep.run_shapes, "trees and chains, acceptance simulated"),
    Stage("sanitizer", sanitizer.run, "compute-sanitizer's memcheck on a short run"),
    Stage("own", own_acceptance.run, "the default model with its own acceptance"),
    Stage("profile", kernel_profile.run, "where the time goes in rows that missed their bar"),
    Stage("kernels", kernel_times.run, "our kernels one by one: time, and bytes a second where they move memory"),
    Stage("tiles", tile_search.run, "layouts of the attention kernels' programs, beside the one in use"),
)


def chosen(only: str | None) -> list[Stage]:
    """The stages of ``--only``, in the order of the table above; all without it.

    Raises:
        ValueError: naming what there is.
    """
    if only is None:
        return list(STAGES)
    names = [name.strip() for name in only.split(",")]
    known = [stage.name for stage in STAGES]
    for name in names:
        if name not in known:
            raise ValueError(f"--only: there is no stage {name!r}; there are {', '.join(known)}")
    return [stage for stage in STAGES if stage.name in names]

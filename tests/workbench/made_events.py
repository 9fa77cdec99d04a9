"""Events as an engine would make them, for feeds that need no engine."""

from __future__ import annotations

from typing import Any

from probes.events import (
    AlertEvent,
    HeartbeatEvent,
    HelloEvent,
    KnobEvent,
    KvUse,
    SpecInfo,
    StepEvent,
    StepShapes,
)
from probes.knobs import Knobs

BOOT = "b7f3a9c2"
T0 = 1_700_000_000.0


def knobs(**changes: Any) -> dict[str, Any]:
    base = Knobs(**changes)
    return {name: getattr(base, name) for name in base.__struct_fields__}


def hello(**changes: Any) -> HelloEvent:
    given: dict[str, Any] = {
        "boot_id": BOOT,
        "seq": 1,
        "t": T0,
        "name": "demo",
        "engine_version": "0.1.0",
        "pid": 4242,
        "model": {"name": "smollm2-135m", "architecture": "llama", "dtype": "bfloat16", "device": "cpu"},
        "draft": {"name": "smollm2-135m-eagle3"},
        "config": {"scheduler": "sync"},
        "knobs": knobs(),
        "knob_epoch": 0,
        "step": 0,
        "which": {
            "scheduler": {"value": "sync", "defined": "engine/scheduler.py:40", "why": "the only one"},
            "attention": {"value": "torch", "defined": "engine/attention/dense.py:12", "why": "auto on cpu"},
        },
    }
    return HelloEvent(**(given | changes))


def step(number: int, requests: int = 3, t: float | None = None, **changes: Any) -> StepEvent:
    """A decode step: speculating with 4/2/16 up to four requests, plain above."""
    spec = changes.pop("spec", requests <= 4)
    width = 16 if spec else 1
    slots = width * requests
    correct = (requests * 3) // 2 if spec else 0
    emitted = requests + correct
    run_us = 38_530 + 100 * (number % 7)
    given: dict[str, Any] = {
        "boot_id": BOOT,
        "seq": number,
        "step": number,
        "t": T0 + number * 0.1 if t is None else t,
        "scheduler": "sync",
        "mode": "spec" if spec else "plain",
        "reason": "threshold" if spec else "above_threshold",
        "reason_detail": f"{requests} decode requests {'<=' if spec else '> threshold'} 4",
        "requests": requests,
        "widths": {str(width): requests},
        "slots_expected": slots,
        "slots_reserved": slots,
        "slots_written": slots,
        "slots_freed": slots - emitted,
        "shapes": StepShapes(input_ids=[slots], seq_lens=[requests], out_cache_loc=[slots], hidden_states=[slots, 576]),
        "spec_info": SpecInfo(algorithm="eagle3", steps=2, topk=4, draft_tokens=16) if spec else None,
        "proposed": 15 * requests if spec else 0,
        "correct_drafts": correct,
        "correct_by_position": [requests, correct - requests] if spec else [],
        "verified": requests if spec else 0,
        "emitted": emitted,
        "accept_length": 1 + correct / requests if spec else None,
        "kv": {"target": KvUse(used=1640 + number, total=32768), "draft": KvUse(used=1640 + number, total=32768)},
        "cpu_us": {
            "schedule": 80,
            "decide": 20,
            "plan": 40,
            "reserve": 30,
            "draft": 4200,
            "run": run_us,
            "accept": 310,
        },
        "round_us": 77_000,
        "trace": {"mode": "engine.policy:decide", "slots_reserved": "engine.kv.allocator:reserve"},
    }
    return StepEvent(**(given | changes))


def prefill(number: int, tokens: int = 256, **changes: Any) -> StepEvent:
    given: dict[str, Any] = {
        "spec": False,
        "mode": "prefill",
        "reason": "prefill_first",
        "reason_detail": "a chunk of 1 prompt",
        "widths": {},
        "prefill_requests": 1,
        "prefill_tokens": tokens,
        "slots_expected": tokens,
        "slots_reserved": tokens,
        "slots_written": tokens,
        "emitted": 0,
        "queue": 2,
    }
    return step(number, 0, **(given | changes))


def heartbeat(number: int = 1, stage: str = "idle", stage_s: float = 0.5, **changes: Any) -> HeartbeatEvent:
    given: dict[str, Any] = {"boot_id": BOOT, "seq": number, "t": T0 + number, "stage": stage, "stage_s": stage_s}
    return HeartbeatEvent(**(given | {"step": 0} | changes))


def knob_change(at_step: int, old: dict[str, Any], new: dict[str, Any], epoch: int = 1, **changes: Any) -> KnobEvent:
    given: dict[str, Any] = {"boot_id": BOOT, "seq": epoch, "step": at_step, "t": T0 + at_step * 0.1, "who": "ann"}
    return KnobEvent(**(given | {"knob_epoch": epoch, "old": old, "new": new} | changes))


def alert(message: str = "acceptance fell to 1.02", **changes: Any) -> AlertEvent:
    given: dict[str, Any] = {
        "boot_id": BOOT,
        "step": 5,
        "t": T0 + 5,
        "code": "acceptance_collapsed",
        "level": "warning",
    }
    return AlertEvent(**(given | {"code": "acceptance_collapsed", "message": message} | changes))


SIMULATED = {"model": "shape:llama-3.1-8b", "weights": "random", "simulate_accept": 2.6}
"""Start options of an engine whose figures are not a model's."""
SIMULATION = "accept length set to 2.6; random weights, shape llama-3.1-8b"


def gpu_hello(**changes: Any) -> HelloEvent:
    """Of an engine on a GPU; with ``config=SIMULATED`` of one that simulates."""
    model = {"name": "llama-3.1-8b", "architecture": "llama", "dtype": "bfloat16", "device": "cuda"}
    model["device_name"] = "NVIDIA H200"
    config = {"scheduler": "overlap", "device": "cuda"} | changes.pop("config", {})
    return hello(model=model, config=config, **changes)


def gpu_step(number: int, requests: int = 10, **changes: Any) -> StepEvent:
    """A step on a GPU, the host ahead of it: a chain of 3, in the graph of the next bucket."""
    bucket = 1 << (requests - 1).bit_length()
    spec = changes.pop("spec", True)
    width, part = (4, "verify") if spec else (1, "decode")
    slots = requests * width
    given: dict[str, Any] = {
        "t": T0 + number * 0.006,
        "scheduler": "overlap",
        "graph": f"{part}/{bucket}x{width}",
        "graph_hit": True,
        "graph_misses": 3,
        "shapes": StepShapes(
            input_ids=[slots], seq_lens=[requests], out_cache_loc=[slots], padded_bucket=[bucket, width]
        ),
        "widths": {str(width): requests},
        "slots_expected": slots,
        "slots_reserved": slots,
        "slots_written": slots,
        "cpu_us": {
            "schedule": 80, "decide": 20, "plan": 40, "reserve": 30, "draft": 120, "run": 210, "accept": 50,
            "sync": 20, "wait": 4900, "commit": 250, "publish": 60,
        },
        "gpu_us": {"idle": 72, "draft": 820, "run": 4730, "accept": 130, "sync": 90},
        "round_us": 5840,
    }  # fmt: skip
    if spec:
        given |= {
            "spec_info": SpecInfo(algorithm="eagle3", steps=3, topk=1, draft_tokens=4),
            "proposed": 3 * requests,
            "slots_freed": slots - requests - (requests * 3) // 2,
        }
    return step(number, requests, **({"spec": spec} | given | changes))

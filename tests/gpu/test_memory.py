"""The printed memory plan against what the device really gives (B47)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.gpu.engines import needs_graphs

ROOT = Path(__file__).parents[2]

SERVE = """
import json, torch
from engine.config import EngineConfig
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from probes.knobs import Knobs
config = EngineConfig(
    model="shape:llama-3.2-1b", weights="random", device="cuda", memory_fraction=0.8, max_running=64,
    max_model_len=65536, knobs=Knobs(spec="on", steps=3, topk=1, draft_tokens=4),
)
llm = LLM(config=config)
most = 0
def watch(llm):
    global most
    free, total = torch.cuda.mem_get_info()
    most = max(most, total - free)
greedy = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)
prompts = [[(i + j) % 1000 for j in range(600)] for i in range(64)]
llm.generate(prompts, greedy, watch)
llm.set_knobs(spec="off")
llm.generate(prompts, greedy, watch)
watch(llm)
plan = llm.assembly.memory
print(json.dumps({"used": most, "planned": plan.planned, "parts": dict(plan.parts), "text": plan.text,
                  "allowed": 0.8 * plan.total}))
"""


@needs_graphs
def test_the_plan_is_what_is_used_within_five_percent() -> None:
    """Fraction 0.8, in a process of its own: the plan lists weights and KV of both models, and the peak is its sum."""
    done = subprocess.run(
        [sys.executable, "-c", SERVE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found["text"])
    for part in ("target weights", "draft weights", "target KV", "draft KV"):
        assert found["parts"][part] > 0
        assert part in found["text"]
    assert found["planned"] <= found["allowed"]
    assert abs(found["used"] - found["planned"]) <= 0.05 * found["planned"]

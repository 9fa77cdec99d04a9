"""compute-sanitizer's memcheck over a short run of the tiny model.

``python -m engine.gpu_check.sanitizer graphs|eager`` is that run, and the stage starts it under the tool.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from engine.gpu_check.session import Session, Skip

TOOL = "compute-sanitizer"
MODULE = "engine.gpu_check.sanitizer"
FAULTS = 86
"""Exit code when the tool found something."""

LIMIT_S = 240

RUNS: dict[str, Mapping[str, str]] = {
    "graphs": {},
    # Every tensor an allocation of its own, so that the tool sees each one's ends; graphs cannot be captured so.
    "eager": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}
"""How the short run launches -> its environment."""


def run(session: Session) -> None:
    """Cells ``sanitizer/graphs`` and ``sanitizer/eager``."""
    for how, environment in RUNS.items():
        session.cell(
            f"sanitizer/{how}",
            partial(check, session, how, environment),
            expect_s=90.0,
            hang_s=LIMIT_S + 30,
        )


def check(session: Session, how: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Errors that memcheck found, and its first words about them.

    Raises:
        Skip: no GPU, or the tool is not installed.
    """
    tool = find_tool()
    if session.device != "cuda" or tool is None:
        raise Skip(f"{TOOL} is not on the PATH" if session.device == "cuda" else "needs a GPU")
    command = [tool, "--tool", "memcheck", "--error-exitcode", str(FAULTS), sys.executable, "-m", MODULE, how]
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=session.patience(LIMIT_S) - 5,
        check=False,
    )
    found = re.search(r"ERROR SUMMARY: (\d+) error", done.stdout)
    if found is None or "short run ended" not in done.stdout:
        raise RuntimeError(f"the run did not end (exit code {done.returncode}): {done.stdout[-1500:]}")
    words = [line for line in done.stdout.splitlines() if line.startswith("=========")]
    return {"errors": int(found[1]), "words": words[:40] if int(found[1]) else []}


def find_tool() -> str | None:
    """On the PATH, or in the CUDA toolkit's folder."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    return shutil.which(TOOL) or shutil.which(TOOL, path=str(home / "bin"))


def short_run(how: str, device: str = "cuda") -> None:
    """Prefill, plain steps, chains and trees, switching, requests that end one by one: a few tokens of each."""
    from engine.config import EngineConfig
    from engine.gpu_check.exactness import switching
    from engine.llm import LLM
    from engine.sampling_params import SamplingParams
    from probes.knobs import Knobs

    config = EngineConfig(
        model="tiny-random",
        device=device,  # type: ignore[arg-type]
        worker="device",
        dtype="float32",
        graphs=how == "graphs",
        graph_batch_sizes=(1, 2, 4),
        max_running=4,
        kv_tokens=2048,
        max_model_len=256,
        knobs=Knobs(spec="off"),
    )
    llm = LLM(config=config)
    prompts = [[(7 * i + j) % 256 for j in range(5 + 30 * i)] for i in range(4)]
    greedy = [SamplingParams(max_tokens=4 + 3 * i, temperature=0.0, ignore_eos=True) for i in range(4)]
    drawn = [SamplingParams(max_tokens=4 + 3 * i, temperature=0.8, seed=i, ignore_eos=True) for i in range(4)]
    for params in (greedy, drawn):
        for before in (None, switching(seed=2)):
            for completion in llm.generate(prompts, params, before):
                assert completion.error is None, completion.error
    print("short run ended", flush=True)


if __name__ == "__main__":
    short_run(*sys.argv[1:])

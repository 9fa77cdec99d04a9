"""What a script imports from the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine
from engine import LLM, Completion, EngineConfig, SamplingParams


def test_the_names_are_the_modules_own() -> None:
    from engine import config, llm, sampling_params

    exported = (LLM, Completion, EngineConfig, SamplingParams)
    assert exported == (llm.LLM, llm.Completion, config.EngineConfig, sampling_params.SamplingParams)
    assert set(engine.__all__) <= set(dir(engine))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'engine' has no attribute 'LMM'"):
        engine.LMM  # noqa: B018


def test_importing_the_package_and_its_options_leaves_torch_alone() -> None:
    probe = "import sys, engine; engine.EngineConfig, engine.SamplingParams; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"

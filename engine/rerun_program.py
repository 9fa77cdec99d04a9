"""``python -m engine.rerun_program --script FILE``: what ``specwb replay --live`` becomes.

Exit code 0: all tokens are as recorded; 1: they differ; 2: it cannot be run again here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from engine.assembly import Assembly
from engine.llm import LLM
from engine.models.checkpoint_error import CheckpointError
from engine.rerun import RerunError, RerunResult, config_of, rerun
from probes.session_script import SessionScript

EXIT_IDENTICAL, EXIT_DIFFERS, EXIT_CANNOT = 0, 1, 2


def build(script: SessionScript, model: str | None, draft_model: str | None) -> LLM:
    """The recorded engine, or the nearest that this machine has.

    Raises:
        RerunError: saying what is missing.
    """
    config = config_of(script, model, draft_model)
    try:
        return LLM(config=config)
    except CheckpointError as error:
        why = str(error).removesuffix(".")
        what = f"{script.model.get('name')} (from {script.model.get('source', 'unknown files')})"
        raise RerunError(
            f"{why}. The recorded engine had model {what}; give the same files as --model, and the draft's as "
            "--draft-model"
        ) from None
    except ValueError as error:
        raise RerunError(f"the recorded engine cannot be built here: {error}") from None


def limits_of(script: SessionScript, assembly: Assembly) -> list[str]:
    """Why tokens may differ without anything being wrong, in words."""
    limits = []
    arithmetic, recorded = assembly.arithmetic, script.model.get("weights")
    if arithmetic.half_precision or script.model.get("half_precision"):
        limits.append(f"{arithmetic.name} is half precision: where two tokens are nearly as likely, another may win")
    if recorded not in (None, arithmetic.weights):
        limits.append(f"the arithmetic was {recorded} and is {arithmetic.weights} here: near-ties may fall otherwise")
    if script.draft is not None and assembly.draft is None:
        limits.append(f"the recorded engine had a draft model and this one has none: {assembly.why_no_draft}")
    return limits


def summary(script: SessionScript, model: str, result: RerunResult) -> str:
    """The result in one line."""
    differing = f" ({result.differing} of {result.requests} requests differ)" if result.differing else ""
    return (
        f"{script.source} on {model}: {result.requests} requests, {result.tokens} tokens compared in {result.steps} "
        f"steps, identical: {'yes' if result.is_identical else 'no'}{differing}"
    )


def as_json(script: SessionScript, model: str, result: RerunResult, notes: list[str]) -> dict[str, Any]:
    """The result as one object."""
    return {
        "recording": script.source,
        "model": model,
        "identical": result.is_identical,
        **msgspec.to_builtins(result),
        "skipped": script.skipped,
        "notes": notes,
    }


def say(message: str) -> None:
    """Narration: stderr."""
    print(f"specwb: {message}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m engine.rerun_program", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="file with a SessionScript as JSON")
    parser.add_argument("--model", help="files of the recorded model, where its name does not lead to them")
    parser.add_argument("--draft-model", help="the same for the draft")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(argv)
    script = msgspec.json.decode(options.script.read_bytes(), type=SessionScript)
    for note in script.notes:
        say(note)
    try:
        llm = build(script, options.model, options.draft_model)
        limits = limits_of(script, llm.assembly)
        for limit in limits:
            say(limit)
        result = rerun(script, llm.core)
    except RerunError as error:
        say(str(error))
        return EXIT_CANNOT
    except KeyboardInterrupt:
        return 130
    model = llm.assembly.target.name
    if options.json:
        print(msgspec.json.encode(as_json(script, model, result, [*script.notes, *limits])).decode(), flush=True)
    else:
        print(summary(script, model, result), flush=True)
        if result.first_difference is not None:
            print(f"first difference: {result.first_difference.text}", flush=True)
    return EXIT_IDENTICAL if result.is_identical else EXIT_DIFFERS


if __name__ == "__main__":
    sys.exit(main())

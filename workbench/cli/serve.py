"""``specwb serve``: start an engine and serve it over HTTP, in a process of its own."""

from __future__ import annotations

import os
from typing import Any, get_args

import click
import msgspec

from probes.knobs import KNOBS, DraftSync, KnobError, Knobs, SpecMode, apply_changes
from workbench.cli.assignments import KNOB_HELP, parse
from workbench.cli.candidates import changes, drafts, models
from workbench.cli.engine_program import require_engine, run_engine_program

SERVER_FIELDS = frozenset({"name", "host", "port"})
KNOB_OPTIONS = ("spec", "threshold", "steps", "topk", "draft_tokens", "draft_sync")


def build_config(options: dict[str, Any], knob_words: dict[str, Any]) -> dict[str, Any]:
    """The start configuration, ``{"server": …, "engine": …}``: only what was given; the rest is the engine's default.

    Raises:
        click.UsageError: a knob that does not exist, a bad value, or values that contradict each other.
    """
    given = {name: value for name, value in options.items() if value is not None}
    knobs: dict[str, Any] = {}
    for name in KNOB_OPTIONS:
        if name in given:
            if name in knob_words:
                raise click.UsageError(f"{name} is given twice: as --{name.replace('_', '-')} and as {name}=…")
            knobs[name] = given.pop(name)
    knobs |= knob_words
    engine = {name: value for name, value in given.items() if name not in SERVER_FIELDS}
    try:
        # A chain has one shape only, so asking for topk=1 is asking for its draft_tokens too.
        if str(knobs.get("topk")) == "1" and "draft_tokens" not in knobs:
            knobs["draft_tokens"] = KNOBS["steps"].parse(knobs.get("steps", Knobs().steps)) + 1  # type: ignore[operator]
        values = apply_changes(Knobs(), knobs)
    except KnobError as error:
        raise click.UsageError(str(error)) from None
    if "threshold" not in knobs:
        engine["measured_threshold"] = True
    if knobs:
        engine["knobs"] = {name: getattr(values, name) for name in knobs}
    return {"server": {name: given[name] for name in SERVER_FIELDS if name in given}, "engine": engine}


def config_file(config: dict[str, Any]) -> str:
    """A file in memory that holds the configuration for the process that we become; it leaves nothing behind."""
    fd = os.memfd_create("specwb-config", 0)
    os.write(fd, msgspec.json.format(msgspec.json.encode(config), indent=2))
    return f"/proc/self/fd/{fd}"


def at_least(least: int) -> click.IntRange:
    return click.IntRange(min=least)


@click.command("serve", epilog=KNOB_HELP)
@click.argument("words", nargs=-1, metavar="[KNOB=VALUE]...", shell_complete=changes)
@click.option("--name", help="Name on this machine, for ls, attach and the others.  [default: default]")
@click.option("--host", help="Address to serve HTTP on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes a free one; ls says which.  [default: 8000]")
@click.option(
    "--model",
    shell_complete=models,
    help="A directory in Hugging Face layout, a built-in name, or shape:NAME.  [default: smollm2-135m]",
)
@click.option(
    "--weights",
    type=click.Choice(["auto", "random"]),
    help="random: a shape:NAME of numbers at random, for benchmarks.  [default: auto, the model's own]",
)
@click.option(
    "--draft-model",
    shell_complete=drafts,
    help="An EAGLE-3 head: directory, built-in name, auto or none.  [default: auto]",
)
@click.option("--dtype", type=click.Choice(["auto", "bfloat16", "float16", "float32", "float64"]), help="Precision.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where the model runs.  [default: cpu]")
@click.option("--threads", type=at_least(0), help="Threads of the model's arithmetic; 0 takes all cores.")
@click.option(
    "--memory-fraction",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the GPU's memory to fill, all told.  [default: 0.85]",
)
@click.option(
    "--threshold",
    type=int,
    help="Speculate at up to this many decode requests a step; 0 never.  [default: as measured for the dtype]",
)
@click.option("--spec", type=click.Choice(get_args(SpecMode)), help="auto: the policy decides; on, off: by hand.")
@click.option("--steps", type=int, help="Draft depth.")
@click.option("--topk", type=int, help="Children kept at each draft node; 1 is a chain.")
@click.option("--draft-tokens", type=int, help="Verify nodes a request, the root included.")
@click.option("--draft-sync", type=click.Choice(get_args(DraftSync)), help="How the draft's KV follows plain steps.")
@click.option(
    "--simulate-accept",
    type=click.FloatRange(min=1),
    help="Force verifies to this accept length, whatever the draft proposed; for benchmarks.",
)
@click.option(
    "--scheduler",
    type=click.Choice(["auto", "sync", "overlap"]),
    help="sync: the CPU waits for each step; overlap: it prepares the next.  [default: overlap on cuda, else sync]",
)
@click.option(
    "--attention",
    type=click.Choice(["auto", "flashinfer", "triton", "torch"]),
    help="Attention backend; auto takes the fastest that can serve the model.  [default: auto]",
)
@click.option("--graphs/--no-graphs", default=None, help="Capture CUDA graphs; without, kernels start one by one.")
@click.option("--max-running", type=at_least(1), help="Most requests that run together.")
@click.option("--max-queue", type=at_least(0), help="Most requests that wait; more get a 429.")
@click.option("--max-model-len", type=at_least(1), help="Longest prompt + output of a request, in tokens.")
@click.option(
    "--kv-tokens",
    type=at_least(0),
    help="Slots in the KV pool, target and draft alike; 0 is 32768 on the CPU, what fits on a GPU.  [default: 0]",
)
@click.option("--page-size", type=at_least(0), help="Slots a page; 0 is 256 on the CPU, 64 on a GPU.  [default: 0]")
@click.option(
    "--prefill-chunk",
    type=at_least(0),
    help="Most prompt tokens in one step; 0 is 256 on the CPU, 8192 on a GPU.  [default: 0]",
)
@click.option("--publish-tokens", is_flag=True, default=None, help="Put token ids on the bus.")
@click.option("--debug-checks", is_flag=True, default=None, help="Check the accounting after every step.")
def command(words: tuple[str, ...], **options: Any) -> None:
    """Start an engine and serve it: OpenAI-compatible HTTP, and a bus to watch and steer it on.

    Runs until Ctrl-C or SIGTERM. Knobs may be given as options or as knob=value, and changed later with `specwb set`.

    \b
    Example:
      specwb serve --name demo --port 8000 threshold=4
      specwb serve --model tiny-random --spec off
      specwb serve --device cuda --model shape:llama-3.1-8b --weights random
    """
    config = build_config(options, parse(words))
    require_engine()
    run_engine_program("engine.server", ["--config-json", config_file(config)])

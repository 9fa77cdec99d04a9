"""``specwb bench``: load an endpoint over HTTP and measure it, an engine of ours also with speculation off and on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.duration import Duration
from workbench.cli.number_list import NumberList
from workbench.console import fail
from workbench.exit_codes import ExitCode
from workbench.whole_file import is_writable

if TYPE_CHECKING:
    from probes.discovery import EngineRecord
    from workbench.bench.endpoint import Endpoint
    from workbench.bench.workload import Workload

MODES = ("off", "on", "auto")


class ModeList(click.ParamType):  # type: ignore[type-arg]
    """``off,on,auto``, or some of them."""

    name = "modes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        words = list(dict.fromkeys(value if isinstance(value, list) else str(value).split(",")))
        if not set(words) <= set(MODES):
            self.fail(f"{value!r}: expected some of {', '.join(MODES)} with commas between them", param, ctx)
        return words


@click.command("bench")
@click.argument("name", required=False, shell_complete=engines)
@click.option("--url", metavar="URL", help="Any OpenAI-compatible endpoint instead of NAME: http://host:port/v1.")
@click.option(
    "--clients", type=NumberList(int, 4096, "1,4,16,48"), metavar="N,…", help="Closed loop.  [default: 1,4,16,48]"
)
@click.option("--rate", type=NumberList(float, 10_000, "2.5"), metavar="R,…", help="Open loop: requests/s, Poisson.")
@click.option(
    "--requests", type=click.IntRange(min=1), help="Requests a run.  [default: 2 a client, and each prompt alike]"
)
@click.option("--duration", type=Duration(), help="Send for so long instead, as 60s; answers are waited for.")
@click.option("--modes", type=ModeList(), metavar="off,on,auto", help="Switch the knob spec between runs.")
@click.option(
    "--pairs", type=click.IntRange(1, 1000), help="Rounds of each setting.  [default: 7 with --modes, else 1]"
)
@click.option(
    "--prompts", type=click.Path(path_type=Path), help='Lines of {"id": …, "prompt": …}.  [default: eight of ours]'
)
@click.option(
    "--random", "random_lens", type=NumberList(int, 1_000_000, "128,128", 2), metavar="IN,OUT", help="Random words."
)
@click.option("--max-tokens", type=click.IntRange(1, 1_000_000), help="Longest answer to a prompt.  [default: 128]")
@click.option("--model", help="Name to ask the endpoint for.  [default: the one it serves]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of arrival times and random words.")
@click.option("--json", "json_path", metavar="FILE", help="All figures as JSON, after every run; - is stdout.")
def command(
    name: str | None,
    url: str | None,
    clients: list[int] | None,
    rate: list[float] | None,
    requests: int | None,
    duration: float | None,
    modes: list[str] | None,
    pairs: int | None,
    prompts: Path | None,
    random_lens: list[int] | None,
    max_tokens: int | None,
    model: str | None,
    seed: int,
    json_path: str | None,
) -> int:
    """Send load over HTTP and measure throughput, latencies and, where there is a bus, the accept length of the run.

    With --modes the settings of speculation take turns in one run and are compared by pairs; the knob is back where it
    was afterwards, also after Ctrl-C. Answers end where the model ends them; --random asks for a fixed length. All is
    greedy. Token counts come from usage. OPENAI_API_KEY is sent to --url if it is set.

    Exit code 1: some requests failed, or none was answered.

    \b
    Example:
      specwb bench --clients 1,4,16,48 --modes off,on,auto
      specwb bench demo --rate 2.5 --duration 60s --random 128,128 --json out.json
      specwb bench --url http://127.0.0.1:8000/v1 --clients 16
    """
    if name is not None and url is not None:
        raise click.UsageError("give NAME or --url, not both")
    if clients is not None and rate is not None:
        raise click.UsageError("--clients is a closed loop and --rate an open one: give one of them")
    if requests is not None and duration is not None:
        raise click.UsageError("give --requests or --duration, not both")
    if random_lens is not None and (prompts is not None or max_tokens is not None):
        raise click.UsageError("--random says what is asked and how long answers are: no --prompts, no --max-tokens")
    if url is not None and modes:
        raise click.UsageError("--modes switches a knob over the bus, and --url has none: give an engine's NAME")
    if json_path not in (None, "-"):
        _check_writable(Path(str(json_path)))
    from probes.ratio import LEAST_PAIRS
    from workbench.bench.benchmark import Benchmark
    from workbench.bench.plan import Level
    from workbench.bench.session import Options

    options = Options(
        levels=[Level(rate=value) for value in rate] if rate else [Level(clients=n) for n in clients or (1, 4, 16, 48)],
        modes=modes or [],
        rounds=pairs if pairs is not None else LEAST_PAIRS if modes else 1,
        requests=requests,
        duration=duration,
        seed=seed,
    )
    workload = _workload(prompts, random_lens, max_tokens or 128, seed)
    record = engine_named(name) if url is None else None
    endpoint = _endpoint(url, model, record)
    with probe_errors(), Benchmark(endpoint, workload, options, record, json_path) as benchmark:
        return benchmark.run()


def _workload(prompts: Path | None, random_lens: list[int] | None, max_tokens: int, seed: int) -> Workload:
    from workbench.bench.workload import ChatPrompts, RandomWords, read_prompts
    from workbench.demo.prompts import load_prompts

    if random_lens is not None:
        return RandomWords(random_lens[0], random_lens[1], seed)
    try:
        read = load_prompts() if prompts is None else read_prompts(prompts)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return ChatPrompts(read, max_tokens, "built-in" if prompts is None else prompts.name)


def _endpoint(url: str | None, model: str | None, record: EngineRecord | None) -> Endpoint:
    from workbench.bench.endpoint import Endpoint

    if record is not None:
        if record.http_url is None:
            fail(
                ExitCode.UNREACHABLE, f"{record.name} has no HTTP address yet (state: {record.state}); see `specwb ls`"
            )
        return Endpoint(f"{record.http_url}/v1", model=model)
    assert url is not None
    try:
        return Endpoint(url, model=model, api_key=os.environ.get("OPENAI_API_KEY"))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _check_writable(path: Path) -> None:
    """Before the run, not after it."""
    if not is_writable(path):
        raise click.UsageError(f"--json {path}: no file can be written there; is {path.parent} a folder, and yours?")

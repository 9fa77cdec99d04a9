"""How a scripted probe runs as a program: its arguments, and what its exceptions become."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from probes.ci.findings import ProbeExit, Unsuited, complain
from probes.ci.openai_client import RequestFailed
from probes.discovery import DiscoveryError
from probes.errors import ProbeError


def make_parser(module: str, description: str, tokens: int) -> argparse.ArgumentParser:
    """With what all probes take. ``tokens``: default length of an answer."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("name", nargs="?", help="the engine; may be left out while only one runs")
    parser.add_argument("--tokens", type=_tokens, default=tokens, help="tokens an answer (default %(default)s)")
    return parser


def _tokens(text: str) -> int:
    count = int(text)
    if not 8 <= count <= 4096:
        raise argparse.ArgumentTypeError(f"{count} is out of range: 8 to 4096")
    return count


def run(probe: Callable[[argparse.Namespace], ProbeExit], options: argparse.Namespace) -> int:
    """Run a probe; the exit code."""
    try:
        return probe(options)
    except DiscoveryError as error:
        complain(str(error))
        return ProbeExit.NO_ENGINE
    except Unsuited as error:
        complain(str(error))
        return ProbeExit.USAGE
    except RequestFailed as error:
        complain(f"a request failed: {error}")
        return ProbeExit.FALSE
    except ProbeError as error:
        complain(str(error))
        return ProbeExit.UNREACHABLE
    except KeyboardInterrupt:
        complain("interrupted")
        return 130


def main(
    module: str,
    description: str,
    tokens: int,
    add_options: Callable[[argparse.ArgumentParser], None],
    probe: Callable[[argparse.Namespace], ProbeExit],
    argv: Sequence[str] | None,
) -> int:
    """A whole program."""
    parser = make_parser(module, description, tokens)
    add_options(parser)
    return run(probe, parser.parse_args(argv))

"""``python -m engine.server --config-json FILE``: what ``specwb serve`` starts."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from engine.server.exit_status import ExitStatus
from engine.server.server_config import ConfigError, read_config
from engine.server.server_process import narrate, serve


def main(arguments: list[str] | None = None) -> int:
    """Run a server; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.server", description=__doc__)
    parser.add_argument("--config-json", type=Path, required=True, metavar="FILE", help="start options as JSON")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config_json)
    except ConfigError as error:
        narrate(str(error))
        return ExitStatus.USAGE
    return asyncio.run(serve(config))


if __name__ == "__main__":
    sys.exit(main())

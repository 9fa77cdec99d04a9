"""``python -m engine.server --config-json FILE``: what ``specwb serve`` starts."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run a server; the exit code."""
    # While the imports run nothing has been started: Ctrl-C just ends the process, without a traceback of theirs.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import asyncio

    from engine.server.exit_status import ExitStatus
    from engine.server.server_config import ConfigError, read_config
    from engine.server.server_process import narrate, serve

    signal.signal(signal.SIGINT, handler)
    parser = argparse.ArgumentParser(prog="python -m engine.server", description=__doc__)
    parser.add_argument("--config-json", type=Path, required=True, metavar="FILE", help="start options as JSON")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config_json)
    except ConfigError as error:
        narrate(str(error))
        return ExitStatus.USAGE
    try:
        return asyncio.run(serve(config))
    except KeyboardInterrupt:  # before the server listens to signals itself
        return ExitStatus.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

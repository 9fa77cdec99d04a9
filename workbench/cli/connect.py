"""From a name on the command line to an engine, and from what can go wrong on the way to an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from probes.control import ControlError, ControlTimeout
from probes.discovery import DiscoveryError, EngineRecord, find_record
from probes.errors import ProbeError
from workbench.console import fail
from workbench.exit_codes import ExitCode


@contextmanager
def probe_errors() -> Iterator[None]:
    """Turn what probes raise into the end of the command.

    Raises:
        CommandError: with the code that fits.
    """
    try:
        yield
    except DiscoveryError as error:
        fail(ExitCode.NO_ENGINE, str(error))
    except ControlTimeout as error:
        fail(ExitCode.UNREACHABLE, str(error))
    except ControlError as error:
        fail(ExitCode.REFUSED, str(error))
    except ProbeError as error:
        fail(ExitCode.UNREACHABLE, str(error))


def engine_named(name: str | None) -> EngineRecord:
    """The running engine of that name, or the only one that runs.

    Raises:
        CommandError: there is none, or the name does not say which.
    """
    with probe_errors():
        return find_record(name)

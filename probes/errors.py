"""What the package raises for people to read: one base class, so that a command can print any of them and exit."""

from __future__ import annotations


class ProbeError(Exception):
    """Something went wrong between an engine and those who watch it; the message says what to do."""


class RuntimeDirError(ProbeError):
    """The directory for sockets and discovery files cannot be used safely."""


class DiscoveryError(ProbeError):
    """No such engine, several to choose from, or a name that is taken."""


class EndpointError(ProbeError):
    """An endpoint that cannot or must not be bound."""


class ControlError(ProbeError):
    """The engine answered a control request with something other than what was asked for."""


class ControlTimeout(ControlError):
    """The engine did not answer a control request in time."""

"""What the server tells one boot of the engine process about itself: who it is and where to connect and bind."""

from __future__ import annotations

import msgspec

from probes.endpoints import Endpoints


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """The value of ``--endpoints``, as JSON."""

    name: str
    """The engine's name on this machine."""
    boot_id: str
    to_engine: str
    """The engine connects a PULL here."""
    from_engine: str
    """The engine connects a PUSH here."""
    bus: Endpoints
    """The engine binds these; they are the same in every boot."""

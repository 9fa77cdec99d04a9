"""The tool's own honesty: a client's tokens against the bus, a recording of it, and what the screen shows."""

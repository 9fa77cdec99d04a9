"""Scripted probes: programs that load a running engine, watch its bus, and exit 0 or 1."""

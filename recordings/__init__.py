"""Recorded sessions that ship with specwb, to be replayed without an engine."""

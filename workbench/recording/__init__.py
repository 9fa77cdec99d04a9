"""Recordings of a bus: written, read, checked, repaired and exported."""

"""``specwb demo``: one engine, one ramp of load, three settings of speculation, and what came of it."""

"""Measuring the engine on this machine: ``python -m engine.measure``. Figures are ratios of runs that alternate."""

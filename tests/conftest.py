"""What every test runs under."""

from __future__ import annotations

import os

from hypothesis import settings

# Figures go to files, also on a machine that has a screen.
os.environ["MPLBACKEND"] = "Agg"

# The same draws in every run, and no verdict that depends on how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

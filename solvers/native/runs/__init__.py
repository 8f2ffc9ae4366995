"""Runs of native code: its memory, its calls, and the front for SciPy."""

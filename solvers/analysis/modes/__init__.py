"""Modes: frequencies, damping and shapes of small motions, modal energies, and mode tracking."""

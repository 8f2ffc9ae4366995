"""Modes: frequencies, damping and shapes of small motions, their energies, and their tracks."""

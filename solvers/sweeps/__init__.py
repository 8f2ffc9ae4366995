"""Sweeps: many runs of one system."""

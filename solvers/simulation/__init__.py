"""Simulation: one run, from stop to stop: steps, events, updates, publishes."""

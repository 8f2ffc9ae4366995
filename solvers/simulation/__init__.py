"""Simulation of one system: steps, events, updates and publishes."""

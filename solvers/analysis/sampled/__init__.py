"""Sampled systems: linear models and equilibria from one sample instant to the next."""

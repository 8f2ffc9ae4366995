"""Sampled systems: linear models and rest from one sample instant to the next."""

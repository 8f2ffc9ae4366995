"""Equations: those of a context as functions with Jacobians, kept for the next question."""

"""Equations of a context as functions with Jacobians, stored for the next analysis."""

"""Derivatives: exact derivatives, Jacobians, and the evaluation of expressions."""

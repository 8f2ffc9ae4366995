"""Statics: paths of equilibria with their stability, stiffness, and buckling."""

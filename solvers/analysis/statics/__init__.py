"""Statics: forces at rest, paths of equilibria with their stability, stiffness and buckling."""

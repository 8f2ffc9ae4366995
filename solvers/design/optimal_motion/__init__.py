"""Optimal motions: direct collocation of traced equations, its solver, its replay."""

"""Constrained dynamics: the equations of a whole tree, multipliers, impacts and projection."""

"""Fits: constants of force laws from measured forces and dynamic stiffness."""

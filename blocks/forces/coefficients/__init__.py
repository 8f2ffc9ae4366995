"""Coefficients of stiffness and damping, from what is known of a joint or a mount."""

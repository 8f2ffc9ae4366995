"""Tracing: symbolic expressions of equations, and the Python functions generated from them."""

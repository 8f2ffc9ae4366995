"""Expressions: symbols, arrays of them, and NumPy's functions on both."""

"""Beams: their laws, shapes and segments, and the leaves, pivots and guides made of them."""

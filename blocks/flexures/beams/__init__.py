"""Beams: their laws, shapes and segments, and leaves and wires."""

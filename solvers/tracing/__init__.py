"""Tracing: equations as expressions, and the readings made of them in Python."""

"""Integration: methods that take steps, and the guard around them."""

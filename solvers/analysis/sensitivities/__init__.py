"""Sensitivities: motions and their derivatives by parameters."""

"""Sensitivities: motions together with their derivatives by parameters."""

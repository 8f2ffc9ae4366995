"""Equilibria along a load: their stability, special points, and pictures."""

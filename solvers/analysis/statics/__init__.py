"""Stiffness, compliance, critical states and buckling."""

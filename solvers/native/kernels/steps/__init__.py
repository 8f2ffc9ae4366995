"""Kernels of single steps: trial steps, interpolants, control of the step size."""

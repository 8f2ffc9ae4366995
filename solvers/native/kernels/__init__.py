"""Kernels: the loops of native runs, as ordinary Python functions."""

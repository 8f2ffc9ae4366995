"""Kernels of ensembles: many runs of one system in lanes."""

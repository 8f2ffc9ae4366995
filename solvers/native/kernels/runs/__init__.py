"""Kernels of whole runs: phases, events, and motions with derivatives."""

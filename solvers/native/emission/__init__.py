"""Emission: the expressions of traces as text for LLVM."""

"""Diagrams as C99: equations from traces and loops from kernels, in one header and one source."""

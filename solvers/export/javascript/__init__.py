"""Diagrams as JavaScript: equations from traces, loops from kernels, and the text that has both."""

"""Notations: expressions as text, in LaTeX and in MathML."""

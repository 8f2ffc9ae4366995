"""Formats: marks and colors, and drawings as figures, SVG, Graphviz and Mermaid."""

"""Diagrams as Functional Mock-up Units: description, functions of the standard, archive."""

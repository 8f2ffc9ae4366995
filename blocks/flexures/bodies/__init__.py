"""Elastic bodies of any shape: reduced finite element models as parts of plants."""

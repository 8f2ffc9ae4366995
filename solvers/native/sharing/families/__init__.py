"""Families: which blocks are alike, and one trace for all of them."""

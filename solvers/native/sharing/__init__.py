"""Sharing: equations of blocks that are alike, traced and compiled once for all of them."""

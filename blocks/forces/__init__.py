"""Compliant force elements: the blocks, the laws that they carry, and where constants come from.

The face offers the laws as ``fx.laws``, the recipes for constants as ``fx.compliance``, and fits to
measurements as ``fx.fitting``; here are the elements, and what is passed to them.
"""

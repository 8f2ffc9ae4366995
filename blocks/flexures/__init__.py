"""Flexures from geometry and material: what they are made of, and how they bend.

Materials and sections are plain values. A section takes symbols as well as numbers, so that its
dimensions can be parameters of a context.
"""

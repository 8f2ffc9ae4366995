"""Plausibility: rules that find numbers far out of proportion, and the report about them.

A rule is a function of a `DiagnosedSystem` that yields findings. Its docstring gives the reason
and the source of its limit; it is entered in `RULES` at the end of its file.
"""

"""Plausibility: rules that find implausible values, and their report.

A rule is a function of a `DiagnosedSystem` that yields findings. Its docstring gives the reason
and the source of its limit; `RULES` at the end of its file lists it.
"""

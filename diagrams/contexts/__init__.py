"""Contexts: the values of a system, their store, updates, paths and files."""

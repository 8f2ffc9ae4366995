"""Connections of a live run: partners behind adapters, channels to them, and what they reach."""

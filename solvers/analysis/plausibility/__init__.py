"""Plausibility: rules that find numbers far out of proportion, and the report about them."""

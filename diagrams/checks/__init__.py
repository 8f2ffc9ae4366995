"""Checks: errors with a way out, checks of arguments, and packages that are optional."""

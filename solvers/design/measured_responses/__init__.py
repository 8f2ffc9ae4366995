"""Measured frequency responses, describing functions, and the limit cycles that they predict."""

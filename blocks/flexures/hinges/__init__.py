"""Flexure hinges: notches, lumped hinges and pseudo-rigid bodies."""

"""Bushings: forces and torques in all six directions between two frames."""

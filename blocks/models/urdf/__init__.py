"""URDF: plants from these files, and these files from plants."""

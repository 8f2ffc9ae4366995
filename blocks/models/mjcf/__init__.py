"""MJCF: plants from the files of MuJoCo, which its own compiler reads."""

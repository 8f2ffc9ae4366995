"""Plants from files of models in the formats URDF, SDF and MJCF, URDF files from plants, and FMUs.

Each reader is one file, and each says in its docstring what it reads. Whatever it does not read
is listed by `left_out.py`; what would change the motion unnoticed is refused.
"""

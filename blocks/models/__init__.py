"""Plants from files of models in the formats URDF, SDF and MJCF, and URDF files from plants.

Each reader is one file, and each says in its docstring what it reads. Whatever it does not read
is listed by `left_out.py`; what would change the motion unnoticed is refused.
"""

from flexure.blocks.models.mjcf.mjcf import load_mjcf
from flexure.blocks.models.sdf.sdf import load_sdf
from flexure.blocks.models.urdf.urdf import load_urdf
from flexure.blocks.models.urdf.urdf_writing import save_urdf

__all__ = ["load_mjcf", "load_sdf", "load_urdf", "save_urdf"]

"""The materials of `Material.common`, by name, from the data beside this file."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from flexure.blocks.flexures.sections.materials import Material

_DATA = files(__package__) / "common_materials.toml"

#: The materials by name.
COMMON = {
    name: Material(**constants, name=name)
    for name, constants in tomllib.loads(_DATA.read_text(encoding="utf-8")).items()
}

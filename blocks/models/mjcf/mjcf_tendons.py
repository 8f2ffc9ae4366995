"""Springs and dampers of the tendons of MJCF files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexure.blocks.forces.between_points.one_sided_spring import Cable
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.on_joints.compliant_coupling import CompliantCoupling
from flexure.blocks.models.mjcf.mjcf_elements import Names
from flexure.blocks.models.mjcf.mujoco_package import mujoco
from flexure.blocks.models.reading.ignored_elements import LeftOut
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.constraints import Coupling
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder

#: Numbers of tendons that have no element, and what they are.
_OTHERS = {
    "limited": "range",
    "frictionloss": "friction",
    "armature": "armature",
    "stiffnesspoly": "nonlinear stiffness",
    "dampingpoly": "nonlinear damping",
}


def add_tendons(
    builder: PlantBuilder,
    model: Any,
    bodies: Sequence[Body],
    joints: Sequence[Joint],
    names: Names,
    left_out: LeftOut,
) -> None:
    """Add tendons between two sites as springs or cables, and those along joints as couplings."""
    for number in range(model.ntendon):
        name = names.of("tendon", number)
        element = _element(name, model, number, bodies, joints)
        if element is None:
            left_out.add(
                f"the tendon '{name}', which is no spring or damper of a kind here", "tendon"
            )
            continue
        builder.add_force_element(element)
        for key, what in _OTHERS.items():
            values = getattr(model, f"tendon_{key}", None)
            if values is not None and np.any(values[number]):
                left_out.add(f"the {what} of the tendon '{name}'", f"tendon {key}")


def _element(
    name: str, model: Any, number: int, bodies: Sequence[Body], joints: Sequence[Joint]
) -> ForceElement | None:
    """Return the element with the force of a tendon, if there is one."""
    first = int(model.tendon_adr[number])
    parts, wraps = slice(first, first + int(model.tendon_num[number])), mujoco().mjtWrap
    kinds, numbers = set(model.wrap_type[parts].tolist()), model.wrap_objid[parts].tolist()
    low, high = map(float, model.tendon_lengthspring[number])
    law = {
        what: float(np.ravel(getattr(model, f"tendon_{what}")[number])[0])
        for what in ("stiffness", "damping")
    }
    if not any(law.values()):
        return None
    has_length = low == high or not law["stiffness"]
    if kinds == {int(wraps.mjWRAP_JOINT)} and has_length:
        pairs = zip(numbers, model.wrap_prm[parts].tolist(), strict=True)
        factors: dict[Any, float] = {joints[n]: factor for n, factor in pairs if factor}
        if not factors:
            return None
        return CompliantCoupling(name, Coupling(f"{name}_length", factors, low), **law)
    if kinds != {int(wraps.mjWRAP_SITE)} or len(numbers) != 2 or high <= 0.0:
        return None
    A, B = (bodies[model.site_bodyid[n]] for n in numbers)
    p_AP, p_BQ = model.site_pos[numbers]
    if has_length:
        return LinearSpringDamper(name, A, p_AP, B, p_BQ, free_length=high, **law)
    if low > 0.0 or law["damping"]:
        return None
    return Cable(name, A, p_AP, B, p_BQ, free_length=high, stiffness=law["stiffness"])

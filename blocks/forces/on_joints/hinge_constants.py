"""The constants of a door hinge: names, units, bounds and defaults, and what each of them means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

# ruff: noqa: RUF009 - what the calls return are fields
_T = TypeVar("_T")


def _constant(default: float, unit: str, doc: str, *, lower: float = 0.0) -> Any:
    """Return a field whose metadata are what its parameter is declared with."""
    return field(default=default, metadata={"unit": unit, "lower": lower, "doc": doc})


@dataclass(frozen=True)
class HingeConstants(Generic[_T]):
    """The constants of a door hinge, which `DoorHingeConfig` explains: of numbers or of symbols.

    Parameters, laws, fits and checks follow from these lines.
    """

    spring_zero_angle_rad: _T = _constant(
        -1.5, "rad", "angle at which the torsion spring is relaxed", lower=-np.inf
    )
    spring_constant: _T = _constant(1.5, "N m/rad", "stiffness of the torsion spring")
    dynamic_friction_torque: _T = _constant(3.0, "N m", "friction of a moving hinge")
    static_friction_torque: _T = _constant(2.0, "N m", "scale of what is added around standstill")
    viscous_friction: _T = _constant(1.0, "N m s/rad", "friction torque per rate")
    catch_width: _T = _constant(0.02, "rad", "range of angles in which the catch acts")
    catch_torque: _T = _constant(15.0, "N m", "scale of the torque of the catch")
    motion_threshold: _T = _constant(0.001, "rad/s", "rate above which the hinge counts as moving")


@dataclass(frozen=True)
class DoorHingeConfig(HingeConstants[float]):
    """Constants of a door hinge; the defaults describe a dishwasher door.

    Attributes
    ----------
    spring_zero_angle_rad : float
        Angle at which the torsion spring is relaxed, in rad.
    spring_constant : float
        Stiffness of the torsion spring, >= 0, in N m/rad.
    dynamic_friction_torque : float
        Friction torque of a moving hinge, >= 0, in N m.
    static_friction_torque : float
        Scale of the additional friction around standstill, >= 0, in N m. Its peak, at a rate of
        0.658 times the motion threshold, is 0.770 of this.
    viscous_friction : float
        Friction torque per rate, >= 0, in N m s/rad.
    catch_width : float
        Range of angles (0, catch_width) in which the catch acts, >= 0, in rad; 0 for no catch.
    catch_torque : float
        Scale of the torque of the catch, >= 0, in N m. The greatest torque is 0.770 of this.
    motion_threshold : float
        Rate above which the hinge counts as moving, >= 0, in rad/s. With 0 there is no dry
        friction. Small values make the equations stiff: the slope of the friction torque at
        standstill is (dynamic + 2 static)/threshold.

    See Also
    --------
    DoorHinge : The element.

    Examples
    --------
    >>> import flexure as fx
    >>> config = fx.DoorHingeConfig(spring_constant=3.0)
    >>> config.spring_constant
    3.0
    """

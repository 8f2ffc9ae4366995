"""Rules about flexures: materials, and dimensions in different units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from flexure.blocks.flexures.beams.leaf_spring import LeafSpring, WireFlexure
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding

#: In m/s, √(E/ρ): 7 in the softest silicone rubber, 1200 in lead, 18000 in diamond.
_SLOWEST, _FASTEST = 6.0, 3e4
_LIGHTEST = 10.0  # kg/m³, of foams
_METERS = "Lengths are in meters: write 0.5e-3 for 0.5 mm"


class _Proportion(NamedTuple):
    """A ratio of two dimensions of a leaf or a wire, and its largest plausible value."""

    one: str
    other: str
    most: float
    why: str


_PROPORTIONS = (
    _Proportion("thickness", "length", 1.0, "A leaf that is thicker than it is long does not bend"),
    _Proportion("thickness", "width", 3.0, "A leaf is thinner than it is wide"),
    _Proportion("diameter", "length", 1.0, "A wire that is thicker than it is long does not bend"),
    _Proportion("width", "length", 30.0, "Leaves are not that wide for their length"),
    _Proportion("length", "thickness", 1e6, "No leaf is that thin"),
    _Proportion("length", "diameter", 1e6, "No wire is that thin"),
)
_LONGEST = 10.0  # m; a flexure of 10 mm whose length is in mm


def materials(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find materials in which sound would be slower than in rubber, or faster than in diamond.

    Young's modulus is then in GPa or MPa, or the density in g/cm³.
    """
    for leaf in diagnosed.leaves:
        handles = {handle.name: handle for handle in leaf.system.numeric_parameters}
        if not {"youngs_modulus", "density"} <= handles.keys():
            continue
        modulus, density = handles["youngs_modulus"], handles["density"]
        E, rho = float(modulus(leaf)), float(density(leaf))
        speed = math.sqrt(E / rho)
        slow = speed < _SLOWEST and rho > _LIGHTEST  # else a model without units
        if not slow and speed <= _FASTEST:
            continue
        limit = _SLOWEST if slow else _FASTEST
        yield Finding(
            "material",
            (diagnosed.path_of(modulus), diagnosed.path_of(density)),
            f"{E:.4g} Pa at {rho:.4g} kg/m^3, in which sound travels at {speed:.3g} m/s",
            speed,
            "m/s",
            limit,
            f"It is {'slower than in soft rubber' if slow else 'faster than in diamond'}",
            "Check the units: steel has a Young's modulus of 193e9 Pa and a density of 7900 kg/m^3",
        )


def dimensions(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find leaves and wires with proportions that no flexure has, or longer than 10 m."""
    for leaf in diagnosed.leaves:
        if not isinstance(leaf.system, (LeafSpring, WireFlexure)):
            continue
        handles = {each.name: each for each in leaf.system.numeric_parameters if each.unit == "m"}
        sizes = {name: float(handle(leaf)) for name, handle in handles.items()}
        for one, other, most, why in _PROPORTIONS:
            if {one, other} <= sizes.keys() and sizes[one] > most * sizes[other]:
                ratio = sizes[one] / sizes[other]
                yield Finding(
                    "dimensions",
                    (diagnosed.path_of(handles[one]), diagnosed.path_of(handles[other])),
                    f"{sizes[one]:.4g} m beside {sizes[other]:.4g} m, {ratio:.3g} times as much",
                    ratio,
                    "",
                    most,
                    why,
                    _METERS,
                )
        if sizes["length"] > _LONGEST:
            yield Finding(
                "dimensions",
                (diagnosed.path_of(handles["length"]),),
                f"{sizes['length']:.4g} m",
                sizes["length"],
                "m",
                _LONGEST,
                "Leaves and wires are shorter: the dimension may be in millimeters",
                f"{_METERS}, or use a Beam for this length",
            )


RULES = (materials, dimensions)

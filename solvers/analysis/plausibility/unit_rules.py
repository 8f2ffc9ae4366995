"""Rules about units: of wires and angles, and of materials and dimensions of flexures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.flexures.beams.leaf_spring import LeafSpring, WireFlexure
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.units import measure_of
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded

_TURN = 2.0 * math.pi
_ROUND = 5.0  # angles in degrees are usually multiples of this
#: In m/s, √(E/ρ): 7 in the softest silicone rubber, 1200 in lead, 18000 in diamond.
_SLOWEST, _FASTEST = 6.0, 3e4
_LIGHTEST = 10.0  # kg/m³, of foams
_METERS = "Lengths are in meters: write 0.5e-3 for 0.5 mm"


def wires(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find wires whose ends are declared with units that differ.

    Spelling does not matter, and rad counts as 1: ``"N m/rad"`` equals ``"J"``. Unknown units are
    compared as text; a port without a unit accepts all.
    """
    for leaf in diagnosed.leaves:
        for port in leaf.system.input_ports:
            source = diagnosed.source_of(port)
            if source is port or not (port.unit and source.unit) or port.unit == source.unit:
                continue
            (given, kind, _), (taken, wanted, _) = measure_of(source.unit), measure_of(port.unit)
            if kind == wanted and math.isclose(given, taken, rel_tol=1e-6):
                continue
            factor = given / taken if kind == wanted else math.nan
            yield exceeded(
                "units of a wire",
                (diagnosed.path_of(source), diagnosed.path_of(port)),
                f"a signal in {source.unit} where {port.unit} is expected"
                + (f", {factor:.4g} times as much" if kind == wanted else ""),
                (factor, "", 1.0),
                "Both ends of a wire carry the same signal",
                "Check the units that both blocks declare, or insert a Gain between them",
            )


def degrees(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find angles that look like degrees: beyond a turn, and a multiple of five.

    The rule checks parameters, joint limits and initial angles in rad, and the amplitudes of
    setpoints if the measurement is in rad. A value of 60 is rarely meant in radians, which would be
    nine turns.
    """
    for path, numbers in _angles(diagnosed):
        large = numbers[np.isfinite(numbers) & (np.abs(numbers) > _TURN)]
        beyond = large[large % _ROUND == 0.0]
        if beyond.size:
            worst = float(beyond[np.argmax(np.abs(beyond))])
            yield exceeded(
                "degrees",
                (path,),
                f"{worst:g} rad, which are {abs(worst) / _TURN:.3g} turns",
                (abs(worst), "rad", _TURN),
                "A round number of this size looks like degrees",
                "Angles are in radians: use np.deg2rad",
            )


def _angles(diagnosed: DiagnosedSystem) -> Iterator[tuple[str, Any]]:
    """Yield the paths of values in rad, and the values."""
    for path, handle, value in diagnosed.values():
        if handle.unit == "rad":
            yield path, np.ravel(value)
    for leaf, tree in diagnosed.trees:
        for mobilizer in tree.topology.mobilizers:
            joint = mobilizer.joint
            if joint.num_positions and tree.output_port(f"{joint.name}_q").unit == "rad":
                paths = diagnosed.state_paths[leaf.x_slice][mobilizer.q]
                yield paths[0], np.ravel(joint.position_limits)
                yield paths[0], tree.q(leaf)[mobilizer.q]
    for leaf in diagnosed.leaves:
        ports = {port.name: port for port in leaf.system.input_ports}
        controls = {"setpoint", "measurement"} <= ports.keys()
        if controls and diagnosed.source_of(ports["measurement"]).unit == "rad":
            yield from _origins(diagnosed, ports["setpoint"])


def _origins(diagnosed: DiagnosedSystem, port: InputPort) -> Iterator[tuple[str, Any]]:
    """Yield the amplitudes of the sources upstream of an input: parameters without a unit."""
    stack, seen = [port], set()
    while stack:
        top = stack.pop()
        source = diagnosed.source_of(top)
        if isinstance(source, InputPort):
            yield diagnosed.path_of(source), np.ravel(source.eval(diagnosed.context))
        elif source.system not in seen:
            seen.add(source.system)
            system = source.system
            if system.input_ports:
                stack.extend(system.input_ports)
            else:
                for handle in system.numeric_parameters:
                    if handle.unit in {"", "rad"}:
                        yield diagnosed.path_of(handle), np.ravel(handle(diagnosed.context))


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
        yield exceeded(
            "material",
            (diagnosed.path_of(modulus), diagnosed.path_of(density)),
            f"{E:.4g} Pa at {rho:.4g} kg/m^3, in which sound travels at {speed:.3g} m/s",
            (speed, "m/s", limit),
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
                yield exceeded(
                    "dimensions",
                    (diagnosed.path_of(handles[one]), diagnosed.path_of(handles[other])),
                    f"{sizes[one]:.4g} m beside {sizes[other]:.4g} m, {ratio:.3g} times as much",
                    (ratio, "", most),
                    why,
                    _METERS,
                )
        if sizes["length"] > _LONGEST:
            yield exceeded(
                "dimensions",
                (diagnosed.path_of(handles["length"]),),
                f"{sizes['length']:.4g} m",
                (sizes["length"], "m", _LONGEST),
                "Leaves and wires are shorter: the dimension may be in millimeters",
                f"{_METERS}, or use a Beam for this length",
            )


RULES = (wires, degrees, materials, dimensions)

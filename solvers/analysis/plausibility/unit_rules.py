"""Rules about units: the two ends of wires, and angles that look like degrees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.units import measure_of
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding

_TURN = 2.0 * math.pi
_ROUND = 5.0  # angles in degrees are usually multiples of this


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
            yield Finding(
                "units of a wire",
                (diagnosed.path_of(source), diagnosed.path_of(port)),
                f"a signal in {source.unit} where {port.unit} is expected"
                + (f", {factor:.4g} times as much" if kind == wanted else ""),
                factor,
                "",
                1.0,
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
            yield Finding(
                "degrees",
                (path,),
                f"{worst:g} rad, which are {abs(worst) / _TURN:.3g} turns",
                abs(worst),
                "rad",
                _TURN,
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


RULES = (wires, degrees)

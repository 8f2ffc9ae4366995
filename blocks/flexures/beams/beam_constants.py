"""Constants of the law of a beam in a context: geometry, material, and free strain."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.flexures.beams.tapered_beam_law import STATIONS, TaperedBeamLaw
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.polygon_constants import (
    part_left_by_warping,
    unevenness,
    warping_length,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.values.arrays import Array, bounded

if TYPE_CHECKING:
    from flexure.blocks.flexures.beams.beam import Beam

_HEAT, _FREE = ("temperature", "temperature_gradient"), "free_strain"


class FreeStrain(NamedTuple):
    """Strain without stress, or its rate."""

    axial: Array  # strain of the axis
    # curvature_y, curvature_z: curvature about y and z, in 1/m.
    curvature_y: Array
    curvature_z: Array


class FreeStrainInputs:
    """The inputs of a beam for its free strain: temperature, and others such as of piezo layers.

    With the coefficient of expansion α, the temperature T at the axis and its gradients along the
    thickness y and the width z::

        ε = α (T - T_ref) + ε_in,   κ_y = α ∂T/∂z + κ_y_in,   κ_z = -α ∂T/∂y + κ_z_in

    With the thermoelastic coefficient β of a material at its temperature T₀, E and G are those at
    T₀ times 1 + β (T - T₀).

    T_ref in K, the temperature of the unstressed beam, is None without inputs of temperature.
    ``free`` states whether there is an input of free strain as such.
    """

    def __init__(
        self, material: Material, reference: float | None, free: bool, attempt: str
    ) -> None:
        self._names: list[str] = []
        self.drives: dict[str, dict[str, Any]] = {}
        if reference is not None:
            T = bounded(reference, f"{attempt} with reference_temperature", lower=0.0, unit="K")
            if material.thermal_expansion is None:
                raise DeclarationError(
                    f"{attempt} with reference_temperature",
                    expected="a material with thermal_expansion",
                    found=f"'{material.name}', whose expansion is not known",
                    remedy="Pass fx.Material(..., thermal_expansion=...) in 1/K",
                )
            self._reference, self._expansion = T, material.thermal_expansion
            self._add("temperature", "K", T, None, "temperature at the axis")
            self._add("temperature_gradient", "K/m", np.zeros(2), ("y", "z"), "along y and z")
        if free:
            names = ("strain", "curvature_y", "curvature_z")
            self._add(_FREE, "", np.zeros(3), names, "axial strain, and curvature in 1/m")

    def _add(self, name: str, unit: str, default: Any, names: Any, doc: str) -> None:
        """Plan an input and that of its rate."""
        self._names.append(name)
        size, per = np.size(default), {"K": "K/s", "K/m": "K/(m s)"}.get(unit, "")
        common = {"size": size, "element_names": names}
        self.drives[name] = {**common, "default": default, "unit": unit, "doc": doc}
        self.drives[f"{name}_rate"] = {
            **common,
            "default": np.zeros(size),
            "unit": per,
            "doc": f"rate of {name}, for its work and for dampers",
        }

    def __bool__(self) -> bool:
        return bool(self._names)

    def declare(self, beam: Beam) -> None:
        """Declare the parameters of expansion."""
        if "temperature" in self._names:
            declare = beam.declare_numeric_parameter
            beam.reference_temperature = declare(
                "reference_temperature", self._reference, unit="K", lower=0.0
            )
            beam.thermal_expansion = declare("thermal_expansion", self._expansion, unit="1/K")
            if beam.material.default.thermoelastic_coefficient is not None:
                beam.thermoelastic_coefficient = declare(
                    "thermoelastic_coefficient",
                    beam.material.default.thermoelastic_coefficient,
                    unit="1/K",
                    doc="change of Young's modulus with the temperature, over it",
                )

    def __call__(self, beam: Beam, context: Any) -> tuple[FreeStrain, FreeStrain]:
        """Return the free strain and its rate in a context."""
        found = []
        for ending, at in (("", beam.reference_temperature), ("_rate", None)):
            read = [beam.input_port(f"{name}{ending}")(context) for name in self._names]
            strain = scalars.array([0.0, 0.0, 0.0]) if self._names[-1] != _FREE else read[-1]
            if beam.thermal_expansion is not None:
                alpha, (T,), (along_y, along_z) = beam.thermal_expansion(context), *read[:2]
                change = T if at is None else T - at(context)
                strain = strain + alpha * scalars.array([change, along_z, -along_y])
            found.append(FreeStrain(*strain))
        return found[0], found[1]


def warmed(beam: Beam, context: Any) -> tuple[MaterialConstants, Array]:
    """Return the material of a beam at its temperature, and the rate of E over E, in 1/s."""
    material = beam.material(context)
    if beam.thermoelastic_coefficient is None:
        return material, 0.0
    coefficient = beam.thermoelastic_coefficient(context)
    (T,), (rate,) = (beam.input_port(f"temperature{end}")(context) for end in ("", "_rate"))
    scale = 1.0 + coefficient * (T - beam.material.default.temperature)
    scale = scalars.refuse_where(
        scale <= 0.0,
        scale,
        lambda: EvaluationError(
            f"Cannot heat '{beam.label}'",
            expected="a temperature at which Young's modulus is positive",
            found=f"{T:.6g} K",
            remedy="Pass temperatures in K, and a thermoelastic_coefficient that holds there",
        ),
    )
    E, G = (scale * each for each in (material.youngs_modulus, material.shear_modulus))
    return material._replace(youngs_modulus=E, shear_modulus=G), coefficient * rate / scale


def beam_constants(beam: Beam, place: int, context: Any) -> Array:
    """Return the constants of the law of a segment of a beam, from geometry and material.

    ``place`` is the number of the segment from A on, which only matters in a tapered beam.
    """
    length, (material, growth) = beam.length(context), warmed(beam, context)
    h = length / beam.num_segments
    factor = 1.0 / (1.0 - material.poissons_ratio**2) if beam.plate else 1.0
    options: dict[str, Any] = {"shear": beam.shear, "plate_factor": factor}
    states = _states_at_rest(beam, h, growth, context)
    if beam.taper:
        constants = [h, *material[:3], factor]
        if beam.damping_time is not None:
            constants.append(beam.damping_time(context))
        ends = (beam.section_at((place + k) / beam.num_segments, context) for k in (0, 1))
        dimensions = [number for each in ends for number in astuple(each)]
        return scalars.array([*constants, *states, *dimensions])
    law = BeamLaw.of(h, beam.section(context), material, **options)
    if beam.end_section is not None:
        sections = [beam.section_at(part, context) for part in STATIONS]
        law = TaperedBeamLaw.between(h, sections, material, **options)
    if beam.clamped_warping:
        x = warping_length(length, beam.section(context), material)
        law = replace(
            law,
            torsion_stiffness=law.torsion_stiffness / part_left_by_warping(x),
            wagner_stiffness=law.wagner_stiffness * unevenness(x)[0],
        )
    if beam.damping_time is not None:
        law = replace(law, damping_time=beam.damping_time(context))
    law = law.with_rest(scalars.array(states))
    if beam.unstressed_pose is not None:
        law = replace(law, rest=law.rest_at(beam.unstressed_pose))
    return law.constants()


def _states_at_rest(beam: Beam, h: Array, growth: Array, context: Any) -> list[Array]:
    """Return q⁰, u⁰, w⁰ and l⁰ of an unstressed arc, and if there is free strain, their rates."""
    # The rate of the stiffness takes the place of that of q_x⁰, which is zero.
    y, z = (0.0, 0.0) if beam.curvature is None else beam.curvature(context)
    if not beam.free_strain:
        if beam.curvature is None:
            return []
        return [0.0, h * y, h * z, 0.0, 0.0, h * scalars.sinc(0.5 * h * np.hypot(y, z))]
    strain, rate = beam.free_strain(beam, context)
    arc, longer = h * (1.0 + strain.axial), h * rate.axial
    y, z = y + strain.curvature_y, z + strain.curvature_z
    turns = arc * y, arc * z
    rates = longer * y + arc * rate.curvature_y, longer * z + arc * rate.curvature_z
    # The chord over the arc, sin(θ/2)/(θ/2), by powers of θ², which have a rate at 0 as well.
    s, ds = turns[0] ** 2 + turns[1] ** 2, 2.0 * (turns[0] * rates[0] + turns[1] * rates[1])
    part = 1.0 - s / 24.0 * (1.0 - s / 80.0 * (1.0 - s / 168.0))
    slope = -1.0 / 24.0 * (1.0 - s / 40.0 * (1.0 - s / 112.0))
    at_rest = [0.0, *turns, 0.0, 0.0, arc * part]
    return [*at_rest, growth, *rates, 0.0, 0.0, longer * part + arc * slope * ds]

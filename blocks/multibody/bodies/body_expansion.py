"""Thermal expansion of rigid bodies, by which the frames on them move apart."""

from __future__ import annotations

from typing import Any

from flexure.diagrams import LeafSystem
from flexure.diagrams.systems.ports import InputPort, LeafOutputPort
from flexure.diagrams.values.arrays import Array, bounded
from flexure.diagrams.values.parameters import NumericParameter


class BodyExpansion(LeafSystem):
    """The thermal strain α (T - T_ref) of a body, of `Body.add_thermal_expansion`.

    The coefficient α in 1/K and T_ref in K, the temperature at which the frames are where they were
    placed, are parameters.
    """

    temperature: InputPort
    strain: LeafOutputPort
    thermal_expansion: NumericParameter
    reference_temperature: NumericParameter

    def __init__(
        self, body: str, coefficient: float, reference_temperature: float, attempt: str
    ) -> None:
        super().__init__(f"{body}_expansion")
        alpha = bounded(coefficient, f"{attempt} with coefficient", unit="1/K")
        T = bounded(reference_temperature, f"{attempt} with reference_temperature", lower=0.0)
        declare = self.declare_numeric_parameter
        self.thermal_expansion = declare("thermal_expansion", alpha, unit="1/K")
        self.reference_temperature = declare("reference_temperature", T, unit="K", lower=0.0)
        self.temperature = self.declare_vector_input("temperature", 1, unit="K", default=[T])
        self.strain = self.declare_vector_output(
            "strain", 1, self._calc_strain, prerequisites=[self.temperature]
        )

    def _calc_strain(self, context: Any) -> Array:
        change = self.temperature(context)[0] - self.reference_temperature(context)
        return self.thermal_expansion(context) * change

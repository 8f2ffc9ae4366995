"""Homotopy to an equilibrium: forces that balance the starting state are gradually released.

At states θ⁰ with the forces r⁰, forces -r⁰ hold the mechanism. From λ = 0 to 1, the equilibria of

    r(θ) - (1 - λ) r⁰ = 0,    g(θ) = (1 - λ) g(θ⁰) + λ ĝ

lead from these states to an equilibrium without them. They are followed by their arc length, so
that mechanisms that bend far or snap through reach an equilibrium, where Newton's method alone
diverges.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import Leg, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.path_following import Walk
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations

_MOST_POINTS = 300


def released(
    equations: StaticEquations, size: float, x: FloatArray, held: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the states and the forces of holders of an equilibrium under the present variables.

    The search begins at the states ``x``; holders keep their outputs at ``held`` in the end. A
    length of ``size``, in m, counts as much as a radian.
    """
    equations.move_to(x)
    variables, start = equations.variables, equations.point()
    if not np.isfinite(start.forces).all():
        raise LostError
    leg = Leg(np.array([variables, variables]), np.array([start.strokes, held]), start.forces)
    curve = EquilibriumCurve(equations, leg, size)
    point = curve.settled(x, np.zeros(len(held)), 0.0)
    for number, stop in enumerate(Walk(curve, [1.0]).stops(point)):
        if number == _MOST_POINTS:
            raise LostError
        point = stop.point
    return point.x, point.reactions

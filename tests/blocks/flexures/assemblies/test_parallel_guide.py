"""A guide of two leaves of 100 x 50 x 0.5 mm: the textbook's formulas, and its elastica."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, fsolve

import flexure as fx
from tests.support.mechanics.rods import leg

LENGTH, WIDTH, THICKNESS, DISTANCE = 0.1, 0.05, 5e-4, 0.08
E, POISSON, DENSITY = 193e9, 0.3, 7880.0
STEEL = fx.Material(E, poissons_ratio=POISSON, density=DENSITY)
AREA, EI = WIDTH * THICKNESS, E * WIDTH * THICKNESS**3 / 12.0
MASS = 0.5  # of the table, in kg
STIFFNESS = 24.0 * EI / LENGTH**3
LEAVES: dict[str, Any] = {
    "distance": DISTANCE,
    "length": LENGTH,
    "width": WIDTH,
    "thickness": THICKNESS,
    "material": STEEL,
}


def guide(*, straight: bool = False, **options: Any) -> fx.Plant:
    """Build the guide, with a table that moves in a plane or, if straight, across alone."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.solid_box(MASS, size=(0.02, 0.1, 0.05)))
    if straight:
        ends = builder.add_frame("ends", builder.world, (LENGTH, 0.0, 0.0))
        builder.add_joint(fx.PrismaticJoint("table", ends, table, axis=(0, 1, 0)))
    else:
        joint = builder.add_joint(fx.PlanarJoint("table", builder.world, table))
        joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
    made = fx.ParallelGuide("guide", builder.world, table, **LEAVES, planar=True, **options)
    builder.add_assembly(made)
    return builder.build()


def at_stroke(stroke: float, **options: Any) -> fx.results.LoadPath:
    """Move the table to strokes of which this is the largest, held so that it does not turn."""
    held = {"table.q[y]": np.linspace(0.0, stroke, 5), "table.q[qz]": np.zeros(5)}
    return fx.load_path(guide(**options), held)


@cache
def elastica(stroke: float) -> tuple[float, float]:
    """Return the force of one leaf, and how far its end moves along it, by shooting."""

    def end(guess: Any) -> Any:
        force, moment = guess
        return leg(np.array([0.0, 0.0, 0.0, moment]), LENGTH, (0.0, force), E * AREA, EI)

    start = 12.0 * EI / LENGTH**3 * stroke * np.array([1.0, 0.5 * LENGTH])

    def miss(guess: Any) -> list[float]:
        _, across, turn, _ = end(guess)
        return [across - stroke, turn]

    found = fsolve(miss, start, xtol=1e-10)
    return float(found[0]), float(end(found)[0] - LENGTH)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "factor"),
    [
        ({"shear": False}, 1.0),
        ({"shear": False, "plate": True}, 1.0 / (1.0 - POISSON**2)),
        ({}, "shear"),
    ],
    ids=["slender", "plate", "shear"],
)
def test_small_strokes_meet_24_ei_over_l_cubed(options: dict[str, Any], factor: Any) -> None:
    if factor == "shear":  # Timoshenko's, with Cowper's constant of a rectangle
        k, G = 10.0 * (1.0 + POISSON) / (12.0 + 11.0 * POISSON), 0.5 * E / (1.0 + POISSON)
        factor = 1.0 / (1.0 + 12.0 * EI / (k * G * AREA * LENGTH**2))
    stroke = 1e-5
    path = at_stroke(stroke, **options)
    force = path.required["table.q[y]"][-1]
    assert force / stroke == pytest.approx(factor * STIFFNESS, rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("segments", [1, 4])
def test_it_shortens_by_three_fifths_of_the_squared_stroke_over_the_length(segments: int) -> None:
    path = at_stroke(2e-3, segments=segments)
    x, y = (path["table.q"] - path["table.q"][0])[path.stations].T[:2]
    np.testing.assert_allclose(x[1:], -0.6 * y[1:] ** 2 / LENGTH, rtol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize(("segments", "error"), [(1, 1e-2), (4, 5e-3)])
def test_along_its_leaves_it_gets_softer_with_the_stroke(segments: int, error: float) -> None:
    """The compliance L/EA of each leaf grows by L y²/(700 EI), as a bent leaf straightens."""
    path = at_stroke(5e-3, segments=segments)
    assert isinstance(path.system, fx.Plant)
    frame = path.system.body("table")
    for k, stroke in zip(path.stations[[0, 2, 4]], (0.0, 2.5e-3, 5e-3), strict=True):
        along = fx.stiffness(path.system, frame, context=path.context(k)).matrix[3, 3]
        compliance = 0.5 * (LENGTH / (E * AREA) + LENGTH * stroke**2 / (700.0 * EI))
        assert 1.0 / along == pytest.approx(compliance, rel=error)


@pytest.mark.full
def test_large_strokes_are_those_of_the_elastica() -> None:
    path = at_stroke(0.04, segments=8, shear=False)
    for k in path.stations[1:]:
        (x, y, _), force = path["table.q"][k], path.required["table.q[y]"][k]
        one, shift = elastica(float(y))
        assert force == pytest.approx(2.0 * one, rel=6e-5)
        assert x - LENGTH == pytest.approx(shift, rel=6e-5)
    # far beyond what is linear, so that the comparison means something
    assert force / (STIFFNESS * 0.04) > 1.15


def exact_frequency() -> float:
    """Return the first frequency of leaves of Euler and Bernoulli that carry half of the mass.

    A leaf clamped at 0 is w = a (cosh - cos) + b (sinh - sin) of β s. At its other end w' = 0 and
    EI w''' = -M ω² w.
    """
    ratio = 0.5 * MASS / (DENSITY * AREA * LENGTH)

    def miss(x: float) -> float:
        C, c, S, s = np.cosh(x), np.cos(x), np.sinh(x), np.sin(x)
        a, b = C - c, -(S + s)
        shear, across = a * (S - s) + b * (C + c), a * (C - c) + b * (S - s)
        return float(shear + ratio * x * across)

    root = brentq(miss, 0.1, 2.0, xtol=1e-14)
    return float(root**2 * np.sqrt(EI / (DENSITY * AREA)) / LENGTH**2)


@pytest.mark.full
def test_its_frequency_is_that_of_leaves_with_mass() -> None:
    leaves = 2.0 * DENSITY * AREA * LENGTH
    rayleigh = np.sqrt(STIFFNESS / (MASS + 13.0 / 35.0 * leaves))
    assert rayleigh == pytest.approx(exact_frequency(), rel=1e-3)
    for segments, error in ((2, 2e-3), (8, 2e-5)):
        plant = guide(straight=True, segments=segments, shear=False)
        found = 2.0 * np.pi * fx.modes(plant).frequencies.min()
        assert found == pytest.approx(exact_frequency(), rel=error), segments

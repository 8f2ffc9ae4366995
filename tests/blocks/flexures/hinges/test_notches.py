"""Notches give way as much as integrals along a beam and the closed forms of the literature say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.sections import CircularNotch, EllipticNotch, FilletedNotch, Notch, RectangleSection
from tests.support.mechanics.plane_stress import bend
from tests.support.tiers import for_each

STEEL = fx.Material.common("structural steel S235")
CIRCULAR = CircularNotch(thickness=1e-3, radius=1e-2, width=8e-3)
ELLIPTIC = EllipticNotch(thickness=4e-4, half_length=6e-3, depth=3e-3, width=5e-3)
FILLETED = FilletedNotch(thickness=5e-4, neck_length=4e-3, fillet_radius=6e-4, width=1e-2)
NOTCHES = [CIRCULAR, ELLIPTIC, FILLETED]

every_notch = pytest.mark.parametrize("notch", NOTCHES, ids=lambda each: type(each).__name__)


def height(notch: Notch, x: float) -> float:
    """The height of the section at x, from the picture of the notch and not from its stations."""
    (a, c), beyond = notch.half_axes, max(0.0, abs(x) - 0.5 * notch.neck_length)
    return float(notch.thickness + 2.0 * c * (1.0 - np.sqrt(max(0.0, 1.0 - (beyond / a) ** 2))))


def integral(notch: Notch, integrand: Callable[[float, float], float]) -> float:
    """Integrate over the length with SciPy, by the angle around the ellipse."""
    (a, _), half = notch.half_axes, 0.5 * notch.neck_length
    total = quad(lambda x: integrand(x, notch.thickness), 0.0, half, epsabs=0.0)[0] if half else 0.0

    def by_angle(angle: float) -> float:
        x = half + a * np.sin(angle)
        return float(integrand(x, height(notch, x)) * a * np.cos(angle))

    places = np.sqrt(notch.thickness / notch.half_axes[1]) * np.array([0.3, 1.0])
    options: Any = {"epsabs": 0.0, "epsrel": 1e-12, "limit": 200, "points": places}
    return float(2.0 * (total + quad(by_angle, 0.0, 0.5 * np.pi, **options)[0]))


@every_notch
def test_all_six_compliances_are_those_of_the_beam_integrals(notch: Notch) -> None:
    E, G, nu, b = STEEL.youngs_modulus, STEEL.shear_modulus, STEEL.poissons_ratio, notch.width
    k = 10.0 * (1.0 + nu) / (12.0 + 11.0 * nu)

    def torsion(height: float) -> float:
        return float(RectangleSection(b, height).torsion_constant)

    expected = [
        integral(notch, lambda x, h: 1.0 / (G * torsion(h))),
        integral(notch, lambda x, h: 12.0 / (E * h * b**3)),
        integral(notch, lambda x, h: 12.0 / (E * b * h**3)),
        integral(notch, lambda x, h: 1.0 / (E * b * h)),
        integral(notch, lambda x, h: 12.0 * x * x / (E * b * h**3) + 1.0 / (k * G * b * h)),
        integral(notch, lambda x, h: 12.0 * x * x / (E * h * b**3) + 1.0 / (k * G * b * h)),
    ]
    found = np.concatenate(fx.laws.NotchLaw.of(notch, STEEL).compliance())
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 0.5, 2.0])
def test_in_full_the_closed_forms_are_the_integrals(ratio: float) -> None:
    notch = CircularNotch(thickness=ratio * 0.01, radius=0.01, width=0.005)
    rotation, translation = fx.laws.NotchLaw.of(notch, STEEL).compliance()
    closed = fx.laws.paros_weisbord(notch, STEEL.youngs_modulus)
    np.testing.assert_allclose([translation[0], *rotation[1:]], closed, rtol=2e-8)


@pytest.mark.parametrize(
    ("ratio", "error"), [(0.01, -0.0013), (0.05, -0.0063), (0.1, -0.0127), (0.2, -0.0257)]
)
def test_simplified_the_closed_form_is_too_soft_by_an_eighth_of_t_over_R(
    ratio: float, error: float
) -> None:
    notch = CircularNotch(thickness=ratio * 0.01, radius=0.01, width=0.005)
    exact = integral(notch, lambda x, h: 12.0 / (notch.width * h**3))
    simplified = fx.laws.paros_weisbord(notch, 1.0, simplified=True)
    assert exact / simplified.bending_z - 1.0 == pytest.approx(error, abs=6e-5)
    stretch = integral(notch, lambda x, h: 1.0 / (notch.width * h))
    assert simplified.axial == pytest.approx(stretch, rel=0.1)
    assert simplified.bending_y == pytest.approx(12.0 / notch.width**2 * stretch, rel=0.1)


def test_an_ellipse_with_equal_axes_is_a_circle() -> None:
    ellipse = EllipticNotch(thickness=1e-3, half_length=1e-2, depth=1e-2, width=8e-3)
    for one, other in zip(
        fx.laws.NotchLaw.of(ellipse, STEEL).compliance(),
        fx.laws.NotchLaw.of(CIRCULAR, STEEL).compliance(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert ellipse.stress_concentration() == CIRCULAR.stress_concentration()


def test_with_small_fillets_a_notch_is_a_leaf() -> None:
    notch = FilletedNotch(thickness=1e-3, neck_length=2e-2, fillet_radius=1e-7, width=1e-2)
    beam = RectangleSection(width=1e-2, thickness=1e-3)
    rotation, _ = fx.laws.NotchLaw.of(notch, STEEL).compliance()
    bending = STEEL.youngs_modulus * beam.second_moment_z
    assert rotation[2] == pytest.approx(2e-2 / bending, rel=2e-5)
    tip = fx.laws.NotchLaw.of(notch, STEEL).compliance().at(1e-2)
    shear = 2e-2 / (beam.shear_factors(0.3)[0] * STEEL.shear_modulus * beam.area)
    assert tip[4, 4] == pytest.approx(2e-2**3 / (3.0 * bending) + shear, rel=3e-5)
    assert tip[2, 4] == pytest.approx(2e-2**2 / (2.0 * bending), rel=3e-5)


@every_notch
def test_at_its_end_a_notch_gives_way_as_unit_loads_say(notch: Notch) -> None:
    E, b, half = STEEL.youngs_modulus, notch.width, 0.5 * notch.length
    matrix = fx.laws.NotchLaw.of(notch, STEEL).compliance().at(half)
    np.testing.assert_array_equal(matrix, matrix.T)
    # A force along y at the end has the lever half - x, and z the opposite one about y.
    turn = integral(notch, lambda x, h: 12.0 * half / (E * b * h**3))
    assert matrix[2, 4] == pytest.approx(turn, rel=1e-8)
    turn = integral(notch, lambda x, h: 12.0 * half / (E * h * b**3))
    assert matrix[1, 5] == pytest.approx(-turn, rel=1e-8)
    law = fx.laws.NotchLaw.of(notch, STEEL)
    beyond = matrix[4, 4] - law.compliance().translation[1]
    assert beyond == pytest.approx(half * matrix[2, 4], rel=1e-9)


def test_a_notch_of_a_wide_plate_bends_in_plane_strain() -> None:
    free, plate = (fx.laws.NotchLaw.of(CIRCULAR, STEEL, plate=each) for each in (False, True))
    ratio = plate.compliance().rotation / free.compliance().rotation
    np.testing.assert_allclose(ratio, [1.0, 1.0, 1.0 - 0.3**2], rtol=1e-14)


@pytest.mark.full
@every_notch
def test_derivatives_by_dimensions_and_modulus_are_exact(notch: Notch) -> None:
    names = [*(each.name for each in fields(notch)), "E", "nu"]
    values = np.array([*(getattr(notch, name) for name in names[:-2]), 210e9, 0.3])

    def readings(numbers: Any) -> Any:
        shape = replace(notch, **dict(zip(names[:-2], numbers, strict=False)))
        E, nu = numbers[-2:]
        law = fx.laws.NotchLaw(shape, E, E / (2.0 * (1.0 + nu)), nu)
        stress = law.greatest_stress([0.02, -0.03, 0.01], [5.0, 2.0, -1.0])
        return [*law.compliance().rotation, *law.compliance().translation, stress]

    keys = [("x", k) for k in range(len(names))]
    traced = readings(scalars.symbols(scalars.Graph(), "x", len(names)))
    jacobian = scalars.jacobian(traced, keys).to_array()
    found = scalars.evaluate(jacobian, dict(zip(keys, values, strict=True)))
    for k, value in enumerate(values):
        step = np.zeros_like(values)
        step[k] = 1e-4 * value
        slope = (
            8.0 * (np.array(readings(values + step)) - readings(values - step))
            - (np.array(readings(values + 2 * step)) - readings(values - 2 * step))
        ) / (12.0 * step[k])
        np.testing.assert_allclose(found[:, k] * value, slope * value, rtol=1e-6, atol=1e-18)


# Stress ------------------------------------------------------------------------------------------


def test_concentration_is_that_of_the_literature_on_flexures() -> None:
    """S. T. Smith, Flexures, takes (1 + t/(2R))^(9/20) for bending."""
    for ratio in (0.05, 0.1, 0.2):
        notch = CircularNotch(thickness=ratio, radius=1.0, width=1.0)
        assert notch.stress_concentration().bending == pytest.approx(
            (1.0 + 0.5 * ratio) ** 0.45, rel=0.006
        )


def test_concentration_vanishes_where_curvature_does() -> None:
    thin = EllipticNotch(thickness=1e-5, half_length=1.0, depth=0.5, width=1.0)
    np.testing.assert_allclose(thin.stress_concentration(), 1.0, atol=1e-5)


def test_sharper_fillets_concentrate_more() -> None:
    factors = np.array(
        [
            replace(FILLETED, fillet_radius=ratio * FILLETED.thickness).stress_concentration()
            for ratio in (0.1, 0.2, 0.5, 1.0, 2.0)
        ]
    )
    assert np.all(np.diff(factors, axis=0) < 0.0)
    assert np.all(factors > 1.0)
    # Read from Peterson's charts for D/d = 3 and r/d = 0.2.
    assert factors[1, 1] == pytest.approx(1.55, abs=0.08)


@every_notch
def test_stress_is_that_of_the_place_where_it_is_greatest(notch: Notch) -> None:
    law, b = fx.laws.NotchLaw.of(notch, STEEL), notch.width
    tension, bending = notch.stress_concentration()
    x = np.linspace(-0.5, 0.5, 4001) * notch.length
    h = np.array([height(notch, each) for each in x])
    for moment, force in (
        ([0.0, 0.0, 0.3], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 40.0, 0.0]),
        ([0.0, 0.2, -0.05], [30.0, 70.0, -20.0]),
    ):
        (_, my, mz), (axial, fy, fz) = moment, force
        stress = tension * (abs(axial) / (b * h) + 6.0 * np.abs(my + x * fz) / (h * b**2))
        stress = stress + bending * 6.0 * np.abs(mz - x * fy) / (b * h**2)
        assert law.greatest_stress(moment, force) == pytest.approx(stress.max(), rel=0.03)
    # Torsion is greatest in the neck: two turns of Mohr's circle.
    tau = tension * notch.neck.torsion_stress(0.1)
    assert law.greatest_stress([0.1, 0.0, 0.0], np.zeros(3)) == pytest.approx(np.sqrt(3.0) * tau)


@every_notch
def test_at_the_greatest_angle_the_stress_is_what_was_admitted(notch: Notch) -> None:
    law = fx.laws.NotchLaw.of(notch, STEEL)
    moment = law.greatest_angle(235e6) / law.compliance().rotation[2]
    assert law.greatest_stress([0.0, 0.0, moment], np.zeros(3)) == pytest.approx(235e6)


@for_each("value", [0.0, -1e-3, np.nan, np.inf])
def test_dimensions_that_cannot_be_are_refused_by_name(value: float) -> None:
    for notch in NOTCHES:
        for each in fields(notch):
            with pytest.raises(ValueRefusedError, match=f"{type(notch).__name__} with {each.name}"):
                replace(notch, **{each.name: value})


# Finite elements ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notch", "softer"),
    [
        (CircularNotch(thickness=0.05, radius=1.0, width=1.0), 0.020),
        (CircularNotch(thickness=0.1, radius=1.0, width=1.0), 0.040),
        (CircularNotch(thickness=0.25, radius=1.0, width=1.0), 0.095),
        (EllipticNotch(thickness=0.2, half_length=1.0, depth=0.5, width=1.0), 0.046),
        (FilletedNotch(thickness=0.1, neck_length=0.9, fillet_radius=0.05, width=1.0), 0.055),
        (FilletedNotch(thickness=0.2, neck_length=0.6, fillet_radius=0.2, width=1.0), 0.103),
    ],
)
def test_finite_elements_tell_by_how_much_a_neck_is_softer_than_a_beam(
    notch: Notch, softer: float
) -> None:
    angle, concentration = bend(
        notch, max(6.0 * notch.thickness, 0.6 * notch.thickness + 1.2 * notch.half_axes[1])
    )
    beam = fx.laws.NotchLaw(notch, 1.0, 1.0 / 2.6, 0.3).compliance().rotation[2]
    assert angle / beam - 1.0 == pytest.approx(softer, abs=0.003)
    assert notch.beam_error == pytest.approx(softer, rel=0.2)
    assert notch.stress_concentration().bending == pytest.approx(concentration, rel=0.01)

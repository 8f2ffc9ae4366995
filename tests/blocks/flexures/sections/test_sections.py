"""Sections have the moments, torsion constants and stresses of closed forms and of handbooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.sparse import diags, eye, kron
from scipy.sparse.linalg import spsolve

import flexure as fx
from flexure.blocks.flexures.sections.polygon_constants import unevenness
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from tests.support.tiers import for_each

GENERAL = {
    "area": 2e-6,
    "second_moment_y": 1e-13,
    "second_moment_z": 4e-13,
    "torsion_constant": 3e-13,
    "extent_y": 1e-3,
    "extent_z": 5e-4,
    "torsion_modulus": 4e-10,
    "shear_factor_y": 0.8,
    "shear_factor_z": 0.9,
}
SECTIONS: list[tuple[type[fx.sections.Section], dict[str, float]]] = [
    (fx.sections.RectangleSection, {"width": 0.02, "thickness": 0.0005}),
    (fx.sections.RectangleSection, {"width": 0.001, "thickness": 0.003}),
    (fx.sections.CircleSection, {"diameter": 0.001}),
    (fx.sections.TubeSection, {"outer_diameter": 0.004, "inner_diameter": 0.003}),
    (fx.sections.GeneralSection, GENERAL),
]


def readings(section: fx.sections.Section) -> list[Any]:
    return [
        section.area,
        section.second_moment_y,
        section.second_moment_z,
        section.polar_moment,
        section.torsion_constant,
        *section.shear_factors(0.3),
        section.normal_stress(2.0, -0.03, 0.02),
        section.torsion_stress(-0.04),
        section.equivalent_stress(2.0, -0.04, -0.03, 0.02),
    ]


def prandtl(a: float, b: float, terms: int = 199) -> tuple[float, float]:
    """Torsion constant and greatest stress per torque from a double sine series of the stress
    function, another one than that of the section.
    """
    m, n = np.meshgrid(np.arange(1, terms, 2), np.arange(1, terms, 2), indexing="ij")
    eigenvalues = (m * np.pi / a) ** 2 + (n * np.pi / b) ** 2
    weights = 32.0 / (np.pi**2 * m * n * eigenvalues)  # of sin(m π y/a) sin(n π z/b), G twist = 1
    J = 2.0 * np.sum(weights * 4.0 * a * b / (np.pi**2 * m * n))
    slope = np.sum(weights * n * np.pi / b * np.sin(0.5 * m * np.pi))
    return float(J), float(slope / J)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0])
def test_torsion_of_rectangles_is_that_of_the_stress_function(ratio: float) -> None:
    section = fx.sections.RectangleSection(width=ratio, thickness=1.0)
    J, stress = prandtl(ratio, 1.0)
    assert section.torsion_constant == pytest.approx(J, rel=1e-6)
    assert section.torsion_stress(1.0) == pytest.approx(stress, rel=1e-2)


# S. P. Timoshenko and J. N. Goodier, Theory of Elasticity, table of constants for torsion.
@pytest.mark.parametrize(
    ("ratio", "k1", "k2"),
    [(1.0, 0.1406, 0.208), (1.5, 0.196, 0.231), (2.0, 0.229, 0.246), (5.0, 0.291, 0.291)],
)
def test_torsion_of_rectangles_is_that_of_the_handbook(ratio: float, k1: float, k2: float) -> None:
    section = fx.sections.RectangleSection(width=0.5, thickness=0.5 * ratio)
    assert section.torsion_constant == pytest.approx(k1 * ratio * 0.5**4, rel=3e-3)
    assert section.torsion_stress(-2.0) == pytest.approx(2.0 / (k2 * ratio * 0.5**3), rel=3e-3)


def test_torsion_of_thin_strips_goes_to_that_of_infinite_ones() -> None:
    width, thickness = 1.0, 1e-4
    section = fx.sections.RectangleSection(width=width, thickness=thickness)
    J = (width - 0.630 * thickness) * thickness**3 / 3.0  # near its ends there is less stress
    assert section.torsion_constant == pytest.approx(J, rel=1e-7, abs=0.0)
    assert section.torsion_stress(1.0) == pytest.approx(thickness / J, rel=1e-7)


def test_it_does_not_matter_which_side_of_a_rectangle_is_the_longer_one() -> None:
    lying = fx.sections.RectangleSection(width=0.3, thickness=0.2)
    standing = fx.sections.RectangleSection(width=0.2, thickness=0.3)
    assert lying.torsion_constant == standing.torsion_constant
    assert lying.torsion_stress(1.0) == standing.torsion_stress(1.0)
    assert lying.second_moment_y == pytest.approx(standing.second_moment_z, rel=1e-15)


def test_second_moments_are_integrals_over_the_section() -> None:
    w, t = 0.3, 0.2
    section = fx.sections.RectangleSection(width=w, thickness=t)
    about_z, _ = dblquad(lambda y, z: y * y, -w / 2, w / 2, -t / 2, t / 2)
    assert section.second_moment_z == pytest.approx(about_z)
    radius, _ = dblquad(lambda r, angle: r**3, 0.0, 2.0 * np.pi, 0.15, 0.25)
    tube = fx.sections.TubeSection(outer_diameter=0.5, inner_diameter=0.3)
    assert tube.polar_moment == pytest.approx(radius)
    assert tube.torsion_constant == pytest.approx(radius)


def test_wagner_constants_are_integrals_over_the_section() -> None:
    w, t = 0.3, 0.2
    fourth, _ = dblquad(lambda y, z: (y * y + z * z) ** 2, -w / 2, w / 2, -t / 2, t / 2)
    rectangle = fx.sections.RectangleSection(width=w, thickness=t)
    expected = fourth - rectangle.polar_moment**2 / rectangle.area
    assert rectangle.wagner_constant == pytest.approx(expected)
    assert rectangle.outermost_square == pytest.approx(0.25 * (w * w + t * t))
    fourth, _ = dblquad(lambda r, angle: r**5, 0.0, 2.0 * np.pi, 0.15, 0.25)
    tube = fx.sections.TubeSection(outer_diameter=0.5, inner_diameter=0.3)
    expected = fourth - tube.polar_moment**2 / tube.area
    assert tube.wagner_constant == pytest.approx(expected)
    assert tube.outermost_square == pytest.approx(0.25**2)


def test_clamped_ends_make_twist_uneven() -> None:
    for x in (0.1, 1.0, 2.9, 3.1, 10.0, 50.0):
        s = (np.arange(4000) + 0.5) / 4000
        twist = 1.0 - np.cosh(x * s) / np.cosh(x)
        mean = twist.mean()
        expected = (twist**4).mean() / mean**4, twist[0] / mean
        assert unevenness(x) == pytest.approx(expected, rel=1e-4)
    assert unevenness(0.01) == pytest.approx((1296.0 / 630.0, 1.5), rel=1e-4)


def test_a_tube_without_a_hole_is_a_circle_and_with_a_thin_wall_a_ring() -> None:
    circle = fx.sections.CircleSection(diameter=0.5)
    tube = fx.sections.TubeSection(outer_diameter=0.5, inner_diameter=1e-9)
    assert np.allclose(readings(tube), readings(circle), rtol=1e-14)
    ring = fx.sections.TubeSection(outer_diameter=1.0, inner_diameter=1.0 - 1e-7)
    nu = 0.3  # Cowper: 2 (1 + ν) / (4 + 3 ν)
    assert ring.shear_factors(nu)[0] == pytest.approx(2.0 * (1.0 + nu) / (4.0 + 3.0 * nu))


def test_stresses_of_bending_are_those_at_the_outermost_points() -> None:
    leaf = fx.sections.RectangleSection(width=0.02, thickness=0.001)
    assert leaf.normal_stress(0.0, 0.0, -2.0) == pytest.approx(2.0 * 0.0005 / leaf.second_moment_z)
    assert leaf.normal_stress(0.0, 2.0, 0.0) == pytest.approx(2.0 * 0.01 / leaf.second_moment_y)
    assert leaf.normal_stress(-3.0, 0.0, 0.0) == pytest.approx(3.0 / 2e-5)
    wire = fx.sections.CircleSection(diameter=0.002)
    assert wire.normal_stress(0.0, 3.0, 4.0) == pytest.approx(32.0 * 5.0 / (np.pi * 0.002**3))
    assert wire.torsion_stress(5.0) == pytest.approx(16.0 * 5.0 / (np.pi * 0.002**3))
    assert wire.equivalent_stress(0.0, 5.0, 0.0, 0.0) == pytest.approx(
        np.sqrt(3.0) * wire.torsion_stress(5.0)
    )


@pytest.mark.parametrize(("kind", "dimensions"), SECTIONS)
def test_dimensions_may_be_symbols_and_derivatives_by_them_are_exact(
    kind: type[fx.sections.Section], dimensions: dict[str, float]
) -> None:
    x = scalars.symbols(scalars.Graph(), "x", len(dimensions))
    keys = [("x", k) for k in range(len(dimensions))]
    traced = readings(kind(**dict(zip(dimensions, x, strict=True))))
    numbers = np.array(list(dimensions.values()))
    values = dict(zip(keys, numbers, strict=True))
    found = [float(scalars.evaluate(each, values)) for each in traced]
    assert np.allclose(found, [float(each) for each in readings(kind(**dimensions))], rtol=1e-14)
    slopes = scalars.evaluate(scalars.jacobian(traced, keys).to_array(), values)
    for k, number in enumerate(numbers):
        step = 1e-6 * number
        higher, lower = (
            readings(
                kind(
                    **dict(
                        zip(
                            dimensions,
                            numbers + sign * step * (np.arange(len(x)) == k),
                            strict=True,
                        )
                    )
                )
            )
            for sign in (1.0, -1.0)
        )
        difference = (np.array(higher) - np.array(lower)) / (2.0 * step)
        scale = np.abs(found) / number
        assert np.all(np.abs(slopes[:, k] - difference) <= 1e-8 * scale)


@for_each(("kind", "dimensions"), SECTIONS)
@for_each("bad", [0.0, -1.0, np.nan, np.inf])
def test_dimensions_that_are_not_positive_are_refused_by_name(
    kind: type[fx.sections.Section], dimensions: dict[str, float], bad: float
) -> None:
    for name in dimensions:
        with pytest.raises(ValueRefusedError, match=f"{kind.__name__} with {name}"):
            kind(**{**dimensions, name: bad})


def test_a_tube_whose_hole_is_too_large_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="an inner diameter below the outer one"):
        fx.sections.TubeSection(outer_diameter=0.002, inner_diameter=0.002)


# Sections of polygons ---------------------------------------------------------------------------

SIZE = {"width": 0.04, "height": 0.05, "flange": 0.004, "web": 0.004}


def poisson(inside: Any, step: float) -> float:
    """Torsion constant of the cells of a grid by differences, with half cells up to the border."""
    n, m = inside.shape
    second: list[Any] = [np.eye(k, k, 1) - 2.0 * np.eye(k) + np.eye(k, k, -1) for k in (n, m)]
    laplace = (kron(second[0], eye(m)) + kron(eye(n), second[1])).tolil()
    padded = np.pad(inside, 1)
    shifts = [(shift, axis) for axis in (0, 1) for shift in (1, -1)]
    outside = np.sum([~np.roll(padded, *each)[1:-1, 1:-1] for each in shifts], axis=0)
    kept = np.flatnonzero(inside.ravel())
    A = -laplace.tocsr()[kept][:, kept] + diags([outside.ravel()[kept].astype(float)], [0])
    return float(2.0 * step**4 * np.sum(spsolve(A.tocsc(), np.full(len(kept), 2.0))))


def test_open_sections_twist_as_a_grid_of_differences_says() -> None:
    cells = 10  # across each wall
    step, (w, h) = 0.004 / cells, (10 * cells, 125 * cells // 10)
    sides = (slice(0, 45), slice(55, w))
    cut: dict[str, list[Any]] = {
        "i_beam": [(slice(cells, h - cells), side) for side in sides],
        "channel": [(slice(cells, h - cells), slice(cells, w))],
        "angle": [(slice(cells, h), slice(cells, w))],
        "tee": [(slice(0, h - cells), side) for side in sides],
    }
    for name, holes in cut.items():
        inside = np.ones((h, w), dtype=bool)
        for hole in holes:
            inside[hole] = False
        finer = np.repeat(np.repeat(inside, 2, axis=0), 2, axis=1)
        expected = (4.0 * poisson(finer, 0.5 * step) - poisson(inside, step)) / 3.0
        section = getattr(fx.sections.GeneralSection, name)(**SIZE)
        assert section.area == pytest.approx(inside.sum() * step**2, rel=1e-12)
        z, y = np.argwhere(inside).T * step
        moments = np.linalg.eigvalsh(np.cov(y, z, bias=True)) * section.area
        found = sorted([section.second_moment_y, section.second_moment_z])
        assert found == pytest.approx(moments, rel=2e-3)
        assert section.torsion_constant == pytest.approx(expected, rel=1e-2)


def test_closed_sections_and_bars_twist_as_closed_forms_say() -> None:
    corners = np.array([(0.0, 0.0), (0.05, 0.0), (0.05, 0.2), (0.0, 0.2)])
    found, bar = (
        fx.sections.GeneralSection.from_polygon(corners),
        fx.sections.RectangleSection(0.2, 0.05),
    )
    assert found.torsion_constant == pytest.approx(bar.torsion_constant, rel=1e-3)
    assert found.torsion_stress(1.0) == pytest.approx(bar.torsion_stress(1.0), rel=2e-3)
    assert found.second_moment_z == pytest.approx(bar.second_moment_z)
    assert found.shear_factors(0.3) == pytest.approx((5.0 / 6.0, 5.0 / 6.0), rel=1e-4)
    turn = 2.0 * np.pi * np.arange(120) / 120
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    tube = fx.sections.TubeSection(2.0, 1.4)
    found = fx.sections.GeneralSection.from_polygon(ring[::-1], [0.7 * ring])
    assert found.torsion_constant == pytest.approx(tube.torsion_constant, rel=2e-3)
    assert found.torsion_stress(1.0) == pytest.approx(tube.torsion_stress(1.0), rel=1e-2)
    box = fx.sections.GeneralSection.box(width=0.04, height=0.05, flange=0.002, web=0.0015)
    bredt = 4.0 * (0.0385 * 0.048) ** 2 / (2.0 * 0.0385 / 0.002 + 2.0 * 0.048 / 0.0015)
    assert box.torsion_constant == pytest.approx(bredt, rel=2e-2)


def test_an_ipe_200_has_the_constants_of_its_table() -> None:
    """EN 10365: 28.5 cm², 1943 cm⁴, 142 cm⁴, and 6.98 cm⁴ by a formula for the fillets."""
    turn = np.linspace(0.0, 0.5 * np.pi, 8)
    fillet = np.column_stack([14.8 - 12.0 * np.cos(turn), 79.5 + 12.0 * np.sin(turn)])
    upper = np.concatenate([fillet, [(50.0, 91.5), (50.0, 100.0)]])
    right = np.concatenate([upper[::-1] * [1, -1], upper])
    corners = 1e-3 * np.concatenate([right, right[::-1] * [-1, 1]])
    section = fx.sections.GeneralSection.from_polygon(corners)
    assert section.area == pytest.approx(28.48e-4, rel=2e-3)
    assert section.second_moment_y == pytest.approx(1943e-8, rel=2e-3)
    assert section.second_moment_z == pytest.approx(142.4e-8, rel=2e-3)
    assert section.torsion_constant == pytest.approx(6.98e-8, rel=2e-2)
    turned = corners @ [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]
    assert fx.sections.GeneralSection.principal_angle(turned) == pytest.approx(0.3)
    again = fx.sections.GeneralSection.from_polygon(turned)
    assert again.second_moment_y == pytest.approx(section.second_moment_y)


def test_what_is_no_polygon_is_refused() -> None:
    bow, square = [(0, 0), (1, 1), (1, 0), (0, 1)], [(0, 0), (1, 0), (1, 1), (0, 1)]
    for corners, holes, message in (
        ([(0, 0), (1, 1)], [], "at least three corners"),
        ([(0, 0), (1, 1), (2, 2)], [], "encloses an area"),
        (bow, [], "does not cross itself"),
        (square, [[(0.5, 0.5), (2, 0.5), (2, 2)]], "inside of the outline"),
        ([(0, 0), (1, 0), (np.nan, 1)], [], "polygon"),
        (square, [0.5 + 0.9999 * (np.array(square) - 0.5)], "10000 mean thicknesses"),
    ):
        with pytest.raises(ValueRefusedError, match=message):
            fx.sections.GeneralSection.from_polygon(corners, holes)
    for wrong in ({"web": 0.04}, {"flange": 0.025}, {"height": -0.05}):
        with pytest.raises(ValueRefusedError, match="i_beam with"):
            fx.sections.GeneralSection.i_beam(**(SIZE | wrong))

"""A beam has the stiffness of textbooks at rest, and exact slopes and known loads beyond."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.forces.bushings.halfway_law import Deformation
from flexure.blocks.math import RigidTransform, rotation_from_rotation_vector
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import FloatArray

NOT_ASKED: Any = None


def bent(theta: Any, position: Any) -> Deformation:
    """Return a deformation by the rotation vector and the position in the frame halfway."""
    p = np.asarray(position)  # in A it has the same length, which is all that is asked for
    return Deformation(RigidTransform(NOT_ASKED, p), NOT_ASKED, NOT_ASKED, theta, p)


KEYS = [("x", k) for k in range(6)]
STRAIGHT = BeamLaw(0.3, 50.0, 1.5, 2.0, 3.0, 0.01, 0.2, 0.1, wagner_stiffness=0.4)
REST = np.array([0.1, 0.3, -0.2, 0.05, -0.1, 0.29])
CURVED = replace(STRAIGHT, rest=REST)
LAWS = pytest.mark.parametrize("law", [STRAIGHT, CURVED], ids=["straight", "curved"])


def traced(law: BeamLaw) -> tuple[Any, Any]:
    x = scalars.symbols(scalars.Graph(), "x", 6)
    return law.stored_energy(bent(x[:3], x[3:])), np.concatenate(law.slopes(bent(x[:3], x[3:])))


def stiffness(law: BeamLaw, at: FloatArray) -> FloatArray:
    _, slopes = traced(law)
    values = dict(zip(KEYS, at, strict=True))
    found: FloatArray = scalars.evaluate(scalars.jacobian(slopes, KEYS).to_array(), values)
    return found


@LAWS
@pytest.mark.parametrize("seed", range(5))
def test_slopes_are_those_of_the_energy(seed: int, law: BeamLaw) -> None:
    rng = np.random.default_rng(seed)
    at = np.concatenate([0.4 * rng.normal(size=3), [0.3, 0, 0] + 0.05 * rng.normal(size=3)])
    energy, _ = traced(law)
    wanted = scalars.evaluate(scalars.gradient(energy, KEYS), dict(zip(KEYS, at, strict=True)))
    found = np.concatenate(law.slopes(bent(at[:3], at[3:])))
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_is_the_same_from_its_other_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta, position = 0.4 * rng.normal(size=3), [0.3, 0, 0] + 0.05 * rng.normal(size=3)
    # Seen from C, with x and y turned around: a half turn about z of -θ and -p.
    turned = np.array([-1.0, -1.0, 1.0])
    swapped = STRAIGHT.stored_energy(bent(-turned * theta, -turned * position))
    assert swapped == pytest.approx(STRAIGHT.stored_energy(bent(theta, position)), rel=1e-13)


def test_at_rest_it_has_the_stiffness_of_the_textbook() -> None:
    h, EA, GJ, bend_y, bend_z, _, shear_y, shear_z, _ = STRAIGHT.constants()
    K = stiffness(STRAIGHT, np.array([0.0, 0.0, 0.0, h, 0.0, 0.0]))
    bending = [12.0 * bend_z / (h**3 * (1.0 + shear_z)), 12.0 * bend_y / (h**3 * (1.0 + shear_y))]
    wanted = np.diag([GJ / h, bend_y / h, bend_z / h, EA / h, *bending])
    assert wanted == pytest.approx(K, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("damping_time", [None, 0.1])
@pytest.mark.parametrize("rest", [None, REST])
def test_constants_make_the_same_law_again(damping_time: Any, rest: Any) -> None:
    law = replace(STRAIGHT, damping_time=damping_time, rest=rest)
    again = BeamLaw.from_constants(law.constants())
    assert again.constants().tolist() == law.constants().tolist()
    assert (again.damping_time, again.rest is None) == (damping_time, rest is None)


@pytest.mark.parametrize(("p", "error"), [(5.0, 1.2e-4), (1.0, 2e-6), (-5.0, 4e-4)])
def test_a_guided_leaf_stiffens_in_tension_and_softens_in_compression(
    p: float, error: float
) -> None:
    law = BeamLaw(1.0, 1e9, 1.0, 1.0, 1.0)
    K = stiffness(law, np.array([0.0, 0.0, 0.0, 1.0 + p / 1e9, 0.0, 0.0]))
    root = np.sqrt(complex(p))
    exact = (root**3 / (root - 2.0 * np.tanh(root / 2.0))).real  # of the beam column
    assert K[4, 4] == pytest.approx(exact, rel=error)
    assert K[4, 4] != pytest.approx(exact, rel=0.01 * error)


@pytest.mark.parametrize("shear", [0.03, 0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("p", [-0.1, 0.1])
def test_shear_has_its_part_in_stiffening(shear: float, p: float) -> None:
    law = BeamLaw(1.0, 1e9, 1.0, 1.0, 1.0, 0.0, 3.0, shear)
    K = stiffness(law, np.array([0.0, 0.0, 0.0, 1.0 + p / 1e9, 0.0, 0.0]))
    # Of E I φ'' = N (φ + γ) - V and k G A γ = V - N φ, the force across the sections, after
    # Haringx, with k G A = 12 EI/(Φ h²).
    rigidity = 12.0 / shear
    root = np.sqrt(complex(p * (1.0 - p / rigidity)))
    bending = 1.0 - 2.0 * np.tanh(root / 2.0) / root
    guided = (1.0 / ((1.0 / p - 1.0 / rigidity) * bending + 1.0 / rigidity)).real
    assert K[4, 4] == pytest.approx(guided, rel=5e-7)
    # Turned by half an angle at each end, there is no force across.
    arc = (0.5 * root / np.tanh(root / 2.0)).real
    assert K[2, 2] == pytest.approx(arc, rel=1e-6 * (1.0 + shear**2))  # p³ is left out


def test_tension_makes_twist_stiffer_as_fibers_do_that_are_wound_up() -> None:
    """The energy of straight fibers of a rectangle, each of which is stretched by the twist."""
    w, t, h, E, strain = 0.5, 0.2, 2.0, 1e3, 1e-3
    y, z = np.meshgrid(*(side * (np.arange(400) + 0.5) / 400 - 0.5 * side for side in (t, w)))
    square, fiber = y * y + z * z, E * w * t / y.size

    def energy(twist: float, length: float) -> float:
        stretched = np.sqrt(length**2 + square * twist**2) / h - 1.0
        return float(0.5 * h * fiber * np.sum(stretched**2))

    slack, k = h * (1.0 - (w * w + t * t) / 24.0 * 0.3**2), 0.3  # of a mean fiber without force
    wagner = E * w * t * (w**4 + t**4) / 180.0
    law = BeamLaw(h, E * w * t, 7.0, 1.0, 1.0, (w * w + t * t) / 12.0, wagner_stiffness=wagner)
    now = bent(np.array([k * h, 0.0, 0.0]), np.array([slack, 0.0, 0.0]))
    found = law.stored_energy(now) - 0.5 * 7.0 * h * k * k
    assert found == pytest.approx(energy(k * h, slack), rel=0.02)  # squares of strains are left out

    length, step = h * (1.0 + strain), 1e-2
    stiffer = 2.0 * (energy(step, length) - energy(0.0, length)) / step**2
    law = BeamLaw(h, E * w * t, 7.0, 1.0, 1.0, (w * w + t * t) / 12.0)
    K = stiffness(law, np.array([0.0, 0.0, 0.0, length, 0.0, 0.0]))
    assert K[0, 0] - 7.0 / h == pytest.approx(stiffer, rel=2e-3)


def test_a_moment_bends_it_to_an_arc_of_its_length() -> None:
    law = BeamLaw(2.0, 1e6, 1.0, 3.0, 4.0)
    for angle in (0.1, 0.3):
        chord = 2.0 * np.sin(angle / 2.0) / (angle / 2.0)
        now = bent(np.array([0.0, 0.0, angle]), [chord, 0.0, 0.0])
        moment, force = law.slopes(now)
        shortening = law.strains(now)
        assert law.stored_energy(now) == pytest.approx(0.5 * 4.0 * angle**2 / 2.0, rel=1e-3)
        # Left over is the angle to the fourth: one beam stands for a small part of a circle.
        free = shortening.length - 2.0 + 2.0 * angle**2 / 24.0
        assert free == pytest.approx(2.0 * angle**4 / 1920.0, rel=1e-3)
        assert moment[:2] == pytest.approx([0.0, 0.0])
        assert force[1:] == pytest.approx([0.0, 0.0])


def test_geometry_and_material_give_the_constants() -> None:
    section, steel = (
        fx.sections.RectangleSection(0.05, 0.0005),
        fx.Material.common("structural steel S235"),
    )
    law = BeamLaw.of(0.1, section, steel)
    bare = BeamLaw.of(0.1, section, steel, shear=False)
    assert law.bending_stiffness_z == pytest.approx(210e9 * 0.05 * 0.0005**3 / 12.0)
    assert law.axial_stiffness == pytest.approx(210e9 * 0.05 * 0.0005)
    assert law.gyration_square == pytest.approx((0.05**2 + 0.0005**2) / 12.0)
    # 12 EI/(k G A h²) = (t/h)² E/(k G), about z with the thickness, about y with the width.
    ratio = 2.6 * (12.0 + 11.0 * 0.3) / (10.0 * 1.3)
    assert law.shear_ratio_z == pytest.approx(ratio * 0.005**2)
    assert law.shear_ratio_y == pytest.approx(ratio * 0.5**2)
    assert (bare.shear_ratio_y, bare.shear_ratio_z) == (0.0, 0.0)


def test_slopes_by_the_thickness_are_exact() -> None:
    steel = fx.Material.common("structural steel S235")
    at = np.array([0.01, 0.02, 0.03, 0.0999, 0.001, 0.0])

    def pull(thickness: Any) -> Any:
        law = BeamLaw.of(0.1, fx.sections.RectangleSection(0.05, thickness), steel)
        return np.concatenate(law.slopes(bent(at[:3], at[3:])))

    t = scalars.symbols(scalars.Graph(), "t", 1)[0]
    by_t = scalars.jacobian(pull(t), [("t", 0)]).to_array()[:, 0]
    found = scalars.evaluate(by_t, {("t", 0): 0.0005})
    difference = (pull(0.0005 + 1e-9) - pull(0.0005 - 1e-9)) / 2e-9
    assert found == pytest.approx(difference, rel=1e-6, abs=1e-8 * np.abs(found).max())


@pytest.mark.parametrize("angle", [0.03, 0.1, 0.3])
def test_a_wide_leaf_that_is_bent_gets_softer_the_stiff_way_as_its_twist_gives_way(
    angle: float,
) -> None:
    leaf = fx.sections.RectangleSection(width=0.05, thickness=5e-4)
    law = BeamLaw.of(0.1, leaf, fx.Material.common("structural steel S235"))
    bend, twist, h = law.bending_stiffness_y, law.torsion_stiffness, law.length

    def energy(across: float) -> float:
        theta = np.array([0.0, across, angle])
        chord = h * np.sinc(0.5 * np.linalg.norm(theta) / np.pi)
        return float(law.stored_energy(bent(theta, [chord, 0.0, 0.0])))

    step = 1e-3 * angle
    found = (energy(step) - 2.0 * energy(0.0) + energy(-step)) / step**2
    # By Castigliano: a moment M about y is a torque of M times the slope s of the arc, which goes
    # from -angle/2 to angle/2, so that its mean square is angle²/12.
    assert found == pytest.approx(1.0 / (h / bend + h * angle**2 / (12.0 * twist)), rel=0.01)


@pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > 1e-18), reason="no longer floating-point numbers"
)
@pytest.mark.parametrize("planar", [False, True])
def test_the_tension_of_a_leaf_at_rest_is_free_of_the_rounding_of_its_length(planar: bool) -> None:
    h, EA, bend = 0.05, 1.9e6, 0.04
    law = BeamLaw(h, EA, 0.06, 60.0, bend, 3e-5, planar=planar)
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(200):
        turn, y = rng.uniform(-0.05, 0.05, 2) * [1.0, h]
        x = h - rng.uniform(0.5, 0.6) * y * y / h
        R = rotation_from_rotation_vector([0.0, 0.0, turn])
        now = law.in_range(law.deformation((R, np.array([x, y, 0.0]))))
        # The same in long precision, from the equations of the docstring, without shear.
        X, Y, T = np.longdouble(x), np.longdouble(y), np.arctan2(np.longdouble(R[1, 0]), R[0, 0])
        length, half = np.sqrt(X * X + Y * Y), np.arctan2(Y, X) - T / 2
        u, H = 2 * np.sin(half) / (1 + np.cos(half)), np.longdouble(h)
        shorter = H * T**2 / 24 + H * u**2 / 10
        D = H / np.longdouble(EA) + H**3 * (T**2 / 720 + u**2 / 700) / np.longdouble(bend)
        N = (length - H + shorter) / D
        worst = max(worst, float(abs(law.strains(now).force - N)))
    assert worst < 0.02 * np.finfo(float).eps * EA

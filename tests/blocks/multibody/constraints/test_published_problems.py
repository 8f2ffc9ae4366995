"""Problems of the IFToMM library of benchmarks, beside their published numbers and second routes.

The library of M. González, D. Dopico, U. Lugrís and J. Cuadrado ("A benchmarking system for MBS
simulation software", Multibody System Dynamics 16, 2006) has the simple pendulum (A01), the N
four-bar mechanism (A02), Andrews' mechanism (A03), Bricard's (A04) and the stiff flyball governor
(A05). A03 and A04 are among the known mechanisms. Numbers of A01 and A02 are from its files of
reference solutions, which Adams computed. Of A05 only a plot was at hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray

G = 9.81


def massless_rod() -> tuple[fx.Plant, fx.Context]:
    """Build A01: a mass of 1 kg on a massless rod of 1 m, let go on the left of the pivot."""
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, -G, 0.0))
    guide = builder.add_body("guide", fx.SpatialInertia.point_mass(0.0))
    mass = builder.add_body("mass", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("x", builder.world, guide, axis=(1, 0, 0)))
    builder.add_joint(fx.PrismaticJoint("y", guide, mass, axis=(0, 1, 0)))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", builder.world, (0, 0, 0), mass, (0, 0, 0), 1.0)
    )
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [-1.0, 0.0])
    return plant, context


def swung(times: FloatArray) -> FloatArray:
    """Return where the mass is, in closed form: sin(φ/2) = k cd(ω₀ t, k) with k² = 1/2."""
    _, cn, dn, _ = ellipj(np.sqrt(G) * times, 0.5)
    angle = 2.0 * np.arcsin(np.sqrt(0.5) * cn / dn)
    place: FloatArray = -np.column_stack([np.sin(angle), np.cos(angle)])
    return place


def test_the_closed_form_of_the_simple_pendulum_is_the_published_motion() -> None:
    published = {
        0.5: (-0.391049, -0.920370),
        10.0: (-0.275087, -0.961419),
        100.0: (-0.181513, -0.983388),
        2000.0: (0.814603, -0.580019),
    }
    found = swung(np.array(list(published)))
    assert found == pytest.approx(np.array(list(published.values())), abs=2e-6)


@pytest.mark.full
def test_a_mass_on_a_massless_rod_swings_on_as_published() -> None:
    plant, context = massless_rod()
    result = fx.simulate(plant, 20.0, context=context, method="DOP853", rtol=1e-10, atol=1e-10)
    times = np.linspace(0.0, 20.0, 41)
    found = np.column_stack([result.sample(f"{name}.translation", times) for name in "xy"])
    assert found == pytest.approx(swung(times), abs=1e-6)
    assert np.ptp(result["mechanical_energy"]) < 5e-5  # J


def windows(count: int) -> tuple[fx.Plant, fx.Context]:
    """Build A02: N four-bars in a row, of bars of 1 m and 1 kg; tops begin with 1 m/s."""
    builder = fx.PlantBuilder("windows", gravity=(0.0, -G, 0.0))
    rod, z = fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x"), (0, 0, 1)
    tops = []
    for k in range(count + 1):
        crank = builder.add_body(f"crank{k}", rod, com=(0.5, 0.0, 0.0))
        tops.append(builder.add_frame(f"top{k}", crank, (1.0, 0.0, 0.0)))
        foot = builder.add_frame(f"foot{k}", builder.world, (float(k), 0.0, 0.0))
        pivot = builder.add_joint(fx.RevoluteJoint(f"pivot{k}", foot, crank, axis=z))
        pivot.default_angle = 0.5 * np.pi
    for k in range(count):
        bar = builder.add_body(f"bar{k}", rod, com=(0.5, 0.0, 0.0))
        elbow = builder.add_joint(fx.RevoluteJoint(f"elbow{k}", tops[k], bar, axis=z))
        elbow.default_angle = -0.5 * np.pi
        end = builder.add_frame(f"end{k}", bar, (1.0, 0.0, 0.0))
        builder.add_loop_joint(fx.RevoluteJoint(f"pin{k}", end, tops[k + 1], axis=z))
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("pivot0").velocities.set(context, [-1.0])
    plant.assemble(context, fixed="pivot0")
    return plant, context


def parallel(count: int, times: FloatArray) -> FloatArray:
    """Return the angle of N + 1 cranks that stay parallel, while N bars keep their direction."""
    inertia, torque = (count + 1) / 3.0 + count, G * (0.5 * (count + 1) + count)
    angles: FloatArray = solve_ivp(
        lambda t, y: [y[1], -torque * np.cos(y[0]) / inertia],
        (0.0, times[-1]),
        [0.5 * np.pi, -1.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-12,
        t_eval=times,
    ).y[0]
    return angles


def test_parallel_cranks_are_the_published_motion_of_forty_four_bars() -> None:
    published = {
        1.0: (-0.115357, -0.993324),
        5.0: (-0.540191, -0.841543),
        10.0: (0.180513, 0.983573),
        15.0: (-0.999878, -0.0156064),
        19.9: (0.268226, 0.963356),
    }
    angle = parallel(40, np.array(list(published)))
    found = np.column_stack([np.cos(angle), np.sin(angle)])
    assert found == pytest.approx(np.array(list(published.values())), abs=1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    ("count", "tolerance", "off", "drift"), [(2, 1e-9, 1e-3, 1e-3), (5, 1e-7, 3e-2, 0.1)]
)
@pytest.mark.filterwarnings("ignore:The state of 'windows' misses its tolerance")
def test_four_bars_in_a_row_stay_parallel_through_all_their_change_points(
    count: int, tolerance: float, off: float, drift: float
) -> None:
    """They are in line twice in each turn, and could go on in other ways. 0.1 J are allowed."""
    plant, context = windows(count)
    assert plant.assemble(context).num_redundant == 3 * count
    result = fx.simulate(
        plant, 10.0, context=context, method="DOP853", rtol=tolerance, atol=0.1 * tolerance
    )
    times = np.linspace(0.0, 10.0, 101)
    expected = parallel(count, times)
    assert np.ptp(expected) > 10.0 * np.pi
    for k in range(count + 1):
        assert result.sample(f"pivot{k}.angle", times) == pytest.approx(expected, abs=off)
    assert np.ptp(result["mechanical_energy"]) < drift
    assert np.max(np.abs(result["pin0.error"])) < 1e-6


DENSITY, BALL, SHIFT, SLOPE = 3000.0, 5.0, 0.05, np.pi / 6.0
STIFFNESS, DAMPING, FREE = 8e5, 4e4, 0.5


def governor() -> tuple[fx.Plant, fx.Context]:
    """Build A05: a shaft, arms with balls at their ends, and stiff springs to a slider."""
    builder = fx.PlantBuilder("governor", gravity=(0.0, 0.0, -G))
    bar = fx.SpatialInertia.solid_box(density=DENSITY, size=(1.0, 0.01, 0.01))
    upright = fx.SpatialInertia.solid_box(density=DENSITY, size=(0.01, 0.01, 1.0))
    cube = fx.SpatialInertia.solid_box(density=DENSITY, size=(0.1, 0.1, 0.1))
    shaft = builder.add_body("shaft", upright, com=(0.0, 0.0, 0.5))
    slider = builder.add_body("slider", cube)
    turn = builder.add_joint(fx.RevoluteJoint("turn", builder.world, shaft, axis=(0, 0, 1)))
    slide = builder.add_joint(fx.PrismaticJoint("slide", shaft, slider, axis=(0, 0, 1)))
    slide.default_translation = 0.5
    for name, side in (("right", 1.0), ("left", -1.0)):
        ball = fx.SpatialInertia.point_mass(BALL).shifted((side, 0.0, 0.0))
        rod = builder.add_body(name, bar.shifted((0.5 * side, 0.0, 0.0)) + ball)
        top = builder.add_frame(f"{name}_top", shaft, (side * SHIFT, 0.0, 1.0))
        arm = builder.add_joint(fx.RevoluteJoint(f"{name}_arm", top, rod, axis=(0, side, 0)))
        arm.default_angle = SLOPE
        builder.add_force_element(
            fx.LinearSpringDamper(
                f"{name}_spring",
                slider,
                (side * SHIFT, 0.0, 0.0),
                rod,
                (0.5 * side, 0.0, 0.0),
                free_length=FREE,
                stiffness=STIFFNESS,
                damping=DAMPING,
            )
        )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    turn.velocities.set(context, [2.0 * np.pi])
    return plant, context


def by_lagrange(times: FloatArray) -> FloatArray:
    """Return the slope of the arms and the height of the slider, by Lagrange's equations.

    The angular momentum about the shaft stays what it is, and gives its speed.
    """
    m, M = DENSITY * 1e-4, DENSITY * 1e-3
    across, along = m * (1.0 + 1e-4) / 12.0, m * 2e-4 / 12.0

    def inertia(slope: float) -> tuple[float, float]:
        c, s = np.cos(slope), np.sin(slope)
        arm = across * c * c + along * s * s + m * (SHIFT + 0.5 * c) ** 2 + BALL * (SHIFT + c) ** 2
        change = 2.0 * (along - across) * s * c - m * (SHIFT + 0.5 * c) * s
        return along + M / 600.0 + 2.0 * arm, 2.0 * (change - 2.0 * BALL * (SHIFT + c) * s)

    momentum = inertia(SLOPE)[0] * 2.0 * np.pi

    def rates(t: float, y: FloatArray) -> list[float]:
        slope, height, slope_rate, height_rate = y
        about, change = inertia(slope)
        x, z = 0.5 * np.cos(slope), 1.0 - 0.5 * np.sin(slope) - height
        length = np.hypot(x, z)
        by_slope, by_height = -0.5 * (x * np.sin(slope) + z * np.cos(slope)) / length, -z / length
        rate = by_slope * slope_rate + by_height * height_rate
        tension = STIFFNESS * (length - FREE) + DAMPING * rate
        weight = (0.5 * m + BALL) * G * np.cos(slope)
        moment = 0.25 * (momentum / about) ** 2 * change + weight - tension * by_slope
        return [
            slope_rate,
            height_rate,
            moment / (across + 0.25 * m + BALL),
            -G - 2.0 * tension * by_height / M,
        ]

    start, end = [SLOPE, 0.5, 0.0, 0.0], times[-1]
    found: FloatArray = solve_ivp(
        rates, (0.0, end), start, method="Radau", rtol=1e-8, atol=1e-10, t_eval=times
    ).y[:2]
    return found


@pytest.mark.full
def test_the_stiff_governor_moves_as_by_lagrange_and_keeps_its_books() -> None:
    plant, context = governor()
    times = np.linspace(0.0, 2.0, 41)
    slope, height = by_lagrange(times)
    assert np.ptp(height) > 0.2
    result = fx.simulate(plant, 2.0, context=context, rtol=1e-7, atol=1e-9)
    assert result.sample("slide.translation", times) == pytest.approx(height, abs=1e-5)
    for arm in ("right_arm.angle", "left_arm.angle"):
        assert result.sample(arm, times) == pytest.approx(slope, abs=1e-5)
    momentum = result["momentum"][:, 2]
    assert momentum == pytest.approx(np.full(len(momentum), momentum[0]), rel=1e-5)
    assert np.ptp(result["ledger.balance"]) < 1e-4  # J

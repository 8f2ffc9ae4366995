"""Load paths agree with closed forms: snap-through, snap-back, buckling, branches, balance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError, ValueRefusedError
from tests.support.systems.foreign_blocks import Spline

POINT = fx.SpatialInertia.point_mass(1.0)
NO_GRAVITY = (0.0, 0.0, 0.0)
STIFFNESS = 1000.0


def truss(rise: float = 0.1, *, series: float | None = None) -> fx.Plant:
    """Two springs from (-1, 0) and (1, 0) to a tip at (0, rise), which may be pushed by a third."""
    builder = fx.PlantBuilder("truss", gravity=NO_GRAVITY)
    tip = builder.add_body("tip", POINT)
    joint = fx.PlanarJoint("tip_joint", builder.world, tip)
    builder.add_joint(joint)
    joint.default_positions = np.array([0.0, rise, 0.0])
    length, origin = float(np.hypot(1.0, rise)), (0.0, 0.0, 0.0)
    for side, x in (("left", -1.0), ("right", 1.0)):
        builder.add_force_element(
            fx.LinearSpringDamper(
                side,
                builder.world,
                (x, 0.0, 0.0),
                tip,
                origin,
                free_length=length,
                stiffness=STIFFNESS,
                damping=0.0,
            )
        )
    turning = fx.JointSpring("turning", joint, stiffness=(0.0, 0.0, 1.0))
    builder.add_force_element(turning)
    if series is not None:
        plate = builder.add_body("plate", POINT)
        slider = builder.add_joint(fx.PrismaticJoint("slider", builder.world, plate, (0, 1, 0)))
        slider.default_positions = np.array([1.0 + rise])
        push = fx.LinearSpringDamper(
            "push", plate, origin, tip, origin, free_length=1.0, stiffness=series, damping=0.0
        )
        builder.add_force_element(push)
    return builder.build()


def truss_force(y: npt.ArrayLike, rise: float = 0.1) -> npt.NDArray[np.float64]:
    """The force along y that holds the tip of the truss at (0, y)."""
    y, length = np.asarray(y), np.hypot(1.0, rise)
    return np.asarray(2.0 * STIFFNESS * y * (1.0 - length / np.hypot(1.0, y)))


def column(count: int, tilt: float = 0.0) -> fx.Plant:
    """Rigid links of 1 m on top of each other, with springs of 1 N m/rad in the joints."""
    builder = fx.PlantBuilder("column", gravity=NO_GRAVITY)
    inner: fx.Body | fx.Frame = builder.world
    for k in range(count):
        link = builder.add_body(f"link{k}", POINT)
        axis = builder.add_joint(fx.RevoluteJoint(f"axis{k}", inner, link, axis=(0, 1, 0)))
        axis.default_angle = 0.0 if k else tilt
        spring = fx.JointSpring(
            f"spring{k}", axis, stiffness=1.0, nominal_position=0.0 if k else tilt
        )
        builder.add_force_element(spring)
        inner = builder.add_frame(f"end{k}", link, (np.eye(3), (0.0, 0.0, 1.0)))
    tip = builder.add_body("tip", POINT)
    builder.add_joint(fx.WeldJoint("weld", inner, tip))
    builder.add_external_force("load", tip)
    return builder.build()


# Limit points -----------------------------------------------------------------------------------


def test_a_truss_snaps_through_at_the_loads_of_the_closed_form() -> None:
    path = fx.load_path(truss(), {"generalized_force[1]": -1.0})
    y = path["tip_joint.q"][:, 1]
    load = path["generalized_force[1]"]
    np.testing.assert_allclose(load, truss_force(y), atol=1e-9)
    length = np.hypot(1.0, 0.1)
    top = np.sqrt(length ** (2.0 / 3.0) - 1.0)
    expected = truss_force([top, -top])
    limits = [point.values["generalized_force[1]"] for point in path.limit_points]
    np.testing.assert_allclose(limits, expected, rtol=1e-9)
    assert not path.branch_points
    assert all(point.moves == "tip_joint.q[y] +1" for point in path.limit_points)
    slope = 2.0 * STIFFNESS * (1.0 - length / np.hypot(1.0, y) ** 3)
    clear = np.abs(slope) > 1e-3
    assert np.array_equal(path.stable[clear], slope[clear] > 0.0)
    assert path.num_unstable.max() == 1
    energy = STIFFNESS * (np.hypot(1.0, y) - length) ** 2
    np.testing.assert_allclose(path.energy, energy, atol=1e-12)


def test_a_stroke_goes_through_where_a_load_would_snap_and_finds_the_force() -> None:
    path = fx.load_path(truss(), {"tip.position[y]": np.linspace(0.1, -0.12, 12)})
    y = np.linspace(0.1, -0.12, 12)
    np.testing.assert_allclose(path["tip.position[y]"][path.stations], y, atol=1e-12)
    force = path.required["tip.position[y]"]
    np.testing.assert_allclose(force, truss_force(path["tip.position[y]"]), atol=1e-8)
    assert path.stable.all()
    assert not path.special


def test_a_truss_behind_a_soft_spring_snaps_back() -> None:
    soft = 6.0
    path = fx.load_path(truss(series=soft), {"plate.position[y]": 0.8})
    y = path["tip_joint.q"][:, 1]
    stroke = 1.0 + y + truss_force(y) / soft
    np.testing.assert_allclose(path["plate.position[y]"], stroke, atol=1e-9)
    np.testing.assert_allclose(path.required["plate.position[y]"], truss_force(y), atol=1e-8)
    length = np.hypot(1.0, 0.1)
    # The stroke turns where the truss has the negative stiffness of the spring.
    turn = np.sqrt((2.0 * STIFFNESS * length / (2.0 * STIFFNESS + soft)) ** (2.0 / 3.0) - 1.0)
    ends = np.array([turn, -turn])
    limits = [point.values["plate.position[y]"] for point in path.limit_points]
    np.testing.assert_allclose(limits, 1.0 + ends + truss_force(ends) / soft, rtol=1e-9)
    between = (y < turn - 1e-3) & (y > -turn + 1e-3)
    assert np.array_equal(path.num_unstable[between], np.ones(np.sum(between)))


def test_a_path_goes_back_through_stations_and_finds_the_other_side() -> None:
    path = fx.load_path(truss(), {"generalized_force[1]": [0.0, -0.5, 0.0]})
    y = path["tip_joint.q"][:, 1]
    assert y[-1] == pytest.approx(-0.1)
    assert path["generalized_force[1]"][path.stations[-1]] == 0.0
    np.testing.assert_allclose(path["generalized_force[1]"], truss_force(y), atol=1e-9)


def test_every_station_is_met_exactly_even_where_steps_bend_over_it() -> None:
    loads = np.linspace(0.0, -0.6, 23)
    path = fx.load_path(truss(), {"generalized_force[1]": loads})
    met = path["generalized_force[1]"][path.stations]
    assert set(loads) <= set(met.tolist())
    assert len(met) > len(loads)  # some of them on both sides of the snap


# Branch points ----------------------------------------------------------------------------------


@pytest.mark.full
def test_a_steep_truss_leaves_its_plane_of_symmetry_before_it_snaps() -> None:
    rise = 3.0
    path = fx.load_path(truss(rise), {"generalized_force[1]": -2500.0})
    first = path.special[0]
    assert first.kind == "branch"
    assert first.moves == "tip_joint.q[x] +1"
    length = np.hypot(1.0, rise)
    # No stiffness along x: 1 - L/l + L/l³ = 0 with the length l of the springs.
    at = brentq(lambda bar: bar**3 - length * (bar**2 - 1.0), 2.0, length)
    y = np.sqrt(at**2 - 1.0)
    load = first.values["generalized_force[1]"]
    np.testing.assert_allclose(load, truss_force(y, rise), rtol=1e-9)


def test_columns_of_rigid_links_buckle_at_the_loads_of_the_closed_form() -> None:
    two = fx.load_path(column(2), {"load[5]": -3.0})
    loads = [-point.values["load[5]"] for point in two.branch_points]
    np.testing.assert_allclose(loads, (3.0 + np.sqrt(5.0) * np.array([-1.0, 1.0])) / 2.0)
    count = 6  # P = 4 sin²(...) of the eigenvalues of the tridiagonal matrix of the springs
    many = fx.load_path(column(count), {"load[5]": -4.0})
    loads = [-point.values["load[5]"] for point in many.branch_points]
    numbers = np.arange(1, count + 1)
    expected = 4.0 * np.sin((2.0 * numbers - 1.0) * np.pi / (4.0 * count + 2.0)) ** 2
    np.testing.assert_allclose(loads, expected, rtol=1e-8)
    assert many.num_unstable.tolist() == sorted(many.num_unstable)


@pytest.mark.parametrize("branch", [1, -1])
def test_a_buckled_link_follows_the_closed_form(branch: int) -> None:
    path = fx.load_path(column(1), {"load[5]": -3.0}, branch=branch)
    angle, load = path["axis0.angle"], path["load[5]"]
    on = np.arange(len(path)) > path.branch_points[0].index
    np.testing.assert_allclose(load[on], -angle[on] / np.sin(angle[on]), rtol=1e-9)
    assert np.all(np.sign(angle[on]) == branch)
    assert path.stable.all()
    straight = fx.load_path(column(1), {"load[5]": -3.0})
    assert np.all(straight["axis0.angle"] == 0.0)
    assert not straight.stable[-1]


def test_an_imperfect_link_bends_away_without_a_branch_point() -> None:
    path = fx.load_path(column(1, tilt=0.01), {"load[5]": -2.0})
    angle = path["axis0.angle"]
    expected = -(angle - 0.01) / np.sin(angle)
    np.testing.assert_allclose(path["load[5]"], expected, rtol=1e-8, atol=1e-9)
    assert path.stable.all()
    assert not path.special


def leaning() -> fx.Plant:
    """A link that stands, held by an inclined spring: its post-buckling is not symmetric."""
    builder = fx.PlantBuilder("leaning", gravity=NO_GRAVITY)
    link = builder.add_body("link", POINT)
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    spring = fx.LinearSpringDamper(
        "spring",
        builder.world,
        (-1.0, 0.0, 0.0),
        link,
        (0.0, 0.0, 1.0),
        free_length=np.sqrt(2.0),
        stiffness=1.0,
        damping=0.0,
    )
    builder.add_force_element(spring)
    tip = builder.add_body("tip", POINT)
    end = builder.add_frame("end", link, (np.eye(3), (0.0, 0.0, 1.0)))
    builder.add_joint(fx.WeldJoint("weld", end, tip))
    builder.add_external_force("load", tip)
    return builder.build()


@pytest.mark.parametrize("branch", [1, -1])
def test_an_asymmetric_branch_rises_to_one_side_and_falls_to_the_other(branch: int) -> None:
    plant = leaning()
    along = {"load[5]": -0.8 if branch == 1 else -0.55}
    try:
        path = fx.load_path(plant, along, branch=branch, max_points=120)
    except EvaluationError as error:  # the branch that falls need not come back
        path = error.result  # type: ignore[attr-defined]
    assert path.branch_points[0].values["load[5]"] == pytest.approx(-0.5, rel=1e-8)
    on = np.arange(len(path)) > path.branch_points[0].index
    on &= np.abs(path["axis.angle"]) < 3.0
    angle = path["axis.angle"][on]
    # P sin φ = d/dφ ½ (sqrt(2 + 2 sin φ) - sqrt 2)²
    length = np.sqrt(2.0 + 2.0 * np.sin(angle))
    expected = -(1.0 - np.sqrt(2.0) / length) * np.cos(angle) / np.sin(angle)
    np.testing.assert_allclose(path["load[5]"][on], expected, rtol=1e-7, atol=1e-12)
    rises = path["load[5]"][on][0] < -0.5
    assert rises == (angle[0] < 0.0)
    assert path.stable[on][0] == rises


# Other paths ------------------------------------------------------------------------------------


def balanced() -> fx.Plant:
    """A lever that a spring without free length balances in every position."""
    builder = fx.PlantBuilder("balanced")
    lever = builder.add_body("lever", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, 0.5))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, lever, axis=(0, 1, 0)))
    spring = fx.LinearSpringDamper(
        "spring",
        builder.world,
        (0.0, 0.0, 1.0),
        lever,
        (0.0, 0.0, 0.5),
        free_length=1e-12,
        stiffness=2.0 * 9.81 * 0.5 / 0.5,
        damping=0.0,
    )
    builder.add_force_element(spring)
    return builder.build()


def test_a_balanced_lever_needs_no_moment_anywhere_and_has_no_stiffness() -> None:
    context = balanced().create_default_context()
    plant = context.system
    context.set("axis.angle", 0.1)
    path = fx.load_path(plant, {"axis.angle": 3.0}, context=context)
    assert np.max(np.abs(path.required["axis.angle"])) < 1e-10
    with pytest.raises(EvaluationError, match=r"none against 'axis\.angle'"):
        fx.load_path(plant, {"generalized_force[0]": 1.0}, context=context)


def ring() -> fx.Plant:
    """Three free blocks in a ring of bushings, of which one is fixed by more of them."""
    builder = fx.PlantBuilder("ring", gravity=(0.0, 0.0, -9.81))
    box = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1))
    places = [(0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.2, 0.3, 0.0)]
    bodies = []
    for k, place in enumerate(places):
        body = builder.add_body(f"block{k}", box)
        joint = builder.add_joint(fx.QuaternionFloatingJoint(f"free{k}", builder.world, body))
        joint.default_pose = (np.eye(3), place)
        bodies.append(body)
    pairs = [(builder.world, bodies[0]), (bodies[0], bodies[1]), (bodies[1], bodies[2])]
    pairs.append((bodies[2], bodies[0]))
    at = {body: np.array(place) for body, place in zip(bodies, places, strict=True)}
    at[builder.world] = np.zeros(3)
    for k, (a, c) in enumerate(pairs):
        middle = 0.5 * (at[a] + at[c])
        frames = [
            builder.add_frame(f"end{k}{name}", body, (np.eye(3), middle - at[body]))
            for name, body in (("a", a), ("c", c))
        ]
        bushing = fx.LinearBushing(
            f"bushing{k}",
            *frames,
            torque_stiffness=(40.0, 50.0, 60.0),
            torque_damping=0.1,
            force_stiffness=(900.0, 800.0, 700.0),
            force_damping=0.1,
        )
        builder.add_force_element(bushing)
    builder.add_external_force("push", bodies[2])
    return builder.build()


@pytest.mark.full
def test_a_closed_chain_of_free_blocks_ends_where_it_is_in_equilibrium() -> None:
    plant = ring()
    softer = [[40.0, 50.0, 60.0], [20.0, 20.0, 20.0]]
    along: dict[str, list[Any]] = {
        "push[5]": [0.0, 60.0],
        "push[1]": [0.0, 8.0],
        "bushing1.torque_stiffness": softer,
    }
    path = fx.load_path(plant, along, signals=["block2.position"])
    assert path.signals["block2.position"].shape == (len(path), 3)
    end = path.context(-1)
    again = fx.equilibrium(plant, end)
    np.testing.assert_allclose(
        path["block2.position"][-1], again.context.get("block2.position"), atol=1e-9
    )
    direct = plant.create_default_context()
    for name, values in along.items():
        direct.set(name, values[-1])
    np.testing.assert_allclose(
        fx.equilibrium(plant, direct).context.get("block2.position"),
        path["block2.position"][-1],
        atol=1e-8,
    )
    turned = path["free2.q"][:, :4]
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0)
    assert path.values["bushing1.torque_stiffness"].shape == (len(path), 3)
    assert [path["push[5]"][-1], path["push[1]"][-1]] == [60.0, 8.0]


def test_the_lag_of_an_actuator_goes_along() -> None:
    builder = fx.PlantBuilder("arm", gravity=NO_GRAVITY)
    arm = builder.add_body("arm", POINT, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=50.0))
    builder.add_actuator("motor", axis)
    outer = fx.DiagramBuilder("driven")
    outer.add(builder.build())
    outer.add_all(fx.Constant("command", 0.0), fx.FirstOrderLag("lag", time_constant=0.1))
    outer.connect_chain("command", "lag", "arm.motor")
    path = fx.load_path(outer.build(), {"command.value": 30.0})
    np.testing.assert_allclose(path["arm.axis.angle"], path["command.value"] / 50.0, atol=1e-12)
    np.testing.assert_allclose(path["lag.y"], path["command.value"], atol=1e-9)
    assert path.stable.all()


@pytest.mark.parametrize("stiffness", [1e3, 1e6, 1e8])
def test_a_slow_integral_controller_is_as_stable_as_its_sign_says(stiffness: float) -> None:
    def held(ki: float, damping: float) -> fx.Diagram:
        builder = fx.PlantBuilder("stage", gravity=NO_GRAVITY)
        table = builder.add_body("table", POINT, com=(0.001, 0.0, 0.0))
        slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, table, (1, 0, 0)))
        spring = fx.JointSpring("spring", slide, stiffness=stiffness, damping=damping)
        builder.add_force_element(spring)
        builder.add_actuator("motor", slide)
        outer = fx.DiagramBuilder("held")
        outer.add(builder.build())
        outer.add_all(fx.PIDController("pid", kp=0.0, ki=ki), fx.Constant("target", 0.0))
        outer.connect_chain("target", "pid.setpoint")
        outer.connect_chain("pid", "stage.motor")
        outer.connect_chain("stage.slide.translation", "pid.measurement")
        return outer.build()

    for ki in (100.0, -100.0):  # poles at about -ki / stiffness, beside those of the spring
        system = held(ki, 1.0)
        path = fx.load_path(system, {"target.value": 10.0 / stiffness})
        assert (path.stable == (ki > 0.0)).all(), (stiffness, ki)
    # With m s³ + k s + ki = 0, the sum of the poles is zero: an undamped spring vibrates ever more.
    undamped = fx.load_path(held(1e-2 * stiffness**1.5, 0.0), {"target.value": 10.0 / stiffness})
    assert (undamped.num_unstable == 1).all()


def test_a_path_without_traces_has_differences() -> None:
    builder = fx.PlantBuilder("arm", gravity=NO_GRAVITY)
    arm = builder.add_body("arm", POINT, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    builder.add_actuator("motor", axis)
    outer = fx.DiagramBuilder("sprung")
    outer.add(builder.build())
    outer.add_all(Spline("spline"), fx.Gain("gain", -40.0))
    outer.connect_chain("arm.axis.angle", "spline", "gain", "arm.motor")
    outer.export_input("arm.generalized_force")
    path = fx.load_path(outer.build(), {"generalized_force": 20.0})
    assert "central differences" in path.how
    np.testing.assert_allclose(path["arm.axis.angle"][-1], np.arctanh(0.5), rtol=1e-4)


# What it answers --------------------------------------------------------------------------------


def test_a_table_has_a_row_for_each_point_and_says_what_is_special() -> None:
    path = fx.load_path(truss(), {"generalized_force[1]": -0.5}, signals=["tip.position"])
    table = path.table()
    assert len(table) == len(path)
    assert table.columns == ("generalized_force[1]", "tip.position", "unstable", "special")
    assert [each for each in table["special"] if each in ("limit", "branch")] == ["limit"] * 2
    stroke = fx.load_path(truss(), {"tip.position[y]": 0.05})
    assert stroke.table().columns[1] == "required force on tip.position[y]"
    context = path.context(-1)
    assert context.get("generalized_force")[1] == -0.5
    assert repr(path).endswith("2 limit points>")


@pytest.mark.full
def test_a_path_becomes_a_data_set() -> None:
    pytest.importorskip("xarray")
    path = fx.load_path(truss(), {"generalized_force[1]": -0.5}, signals=["tip.position"])
    data = path.to_xarray()
    assert data["tip.position"].dims == ("point", "tip.position_0")
    assert float(data["energy"][0]) == 0.0


# What is refused --------------------------------------------------------------------------------


def test_a_free_motion_is_named() -> None:
    builder = fx.PlantBuilder("loose", gravity=NO_GRAVITY)
    body = builder.add_body("body", POINT)
    builder.add_joint(fx.PlanarJoint("joint", builder.world, body))
    builder.add_force_element(
        fx.JointSpring("spring", builder.joints[0], stiffness=(5.0, 0.0, 5.0))
    )
    with pytest.raises(EvaluationError, match=r"none against 'joint.q\[y\]'"):
        fx.load_path(builder.build(), {"generalized_force[0]": 1.0})


def test_a_free_turn_is_named_where_only_rounding_resists_it() -> None:
    builder = fx.PlantBuilder("hung")
    body = builder.add_body("body", POINT, com=(0.1, 0.2, -0.5))
    builder.add_joint(fx.BallQuaternionJoint("ball", builder.world, body))
    builder.add_external_force("push", body)
    with pytest.raises(EvaluationError, match=r"none against .*ball.rotation"):
        fx.load_path(builder.build(), {"push[0]": 1.0})


def test_where_an_element_is_beyond_its_range_the_path_so_far_is_kept() -> None:
    builder = fx.PlantBuilder("turned", gravity=NO_GRAVITY)
    body = builder.add_body("body", POINT)
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis=(0, 0, 1)))
    bushing = fx.LinearBushing(
        "bushing",
        builder.world,
        body,
        torque_stiffness=2.0,
        torque_damping=0.0,
        force_stiffness=1.0,
        force_damping=0.0,
    )
    builder.add_force_element(bushing)
    with pytest.raises(EvaluationError, match="bushing") as caught:
        fx.load_path(builder.build(), {"generalized_force[0]": 8.0})
    path = caught.value.result  # type: ignore[attr-defined]
    assert path.outcome == "failed"
    assert 5.7 < path["generalized_force"][-1] < 2.0 * np.deg2rad(170.0) + 1e-6
    assert "after" in str(caught.value)


def test_a_path_that_ends_nowhere_is_given_up() -> None:
    with pytest.raises(EvaluationError, match="more than 20 points") as caught:
        fx.load_path(truss(), {"generalized_force[1]": -0.5}, max_points=20)
    assert len(caught.value.result) == 20  # type: ignore[attr-defined]


def test_a_branch_that_is_not_there_is_said() -> None:
    with pytest.raises(EvaluationError, match="expected 1 branch points on the way; found 0"):
        fx.load_path(column(1, tilt=0.01), {"load[5]": -2.0}, branch=1)


def test_wrong_wishes_are_refused_and_change_nothing() -> None:
    plant = truss()
    context = plant.create_default_context()
    before = context.get("tip_joint.q").copy()
    refused: list[tuple[dict[str, Any], Any, str]] = [
        ({}, ValueRefusedError, "a dictionary"),
        ({"nothing": 1.0}, UnknownNameError, "nothing"),
        ({"left.stiffness": -1.0}, ValueRefusedError, "stiffness"),
        ({"left.stiffness": np.nan}, ValueRefusedError, "left.stiffness"),
        ({"left.stiffness": 1e200}, ValueRefusedError, r"values in \[-1e\+100, 1e\+100\]"),
        ({"left.stiffness": [1000.0]}, ValueRefusedError, "two or more"),
        ({"left.stiffness": [1000.0, 1000.0]}, ValueRefusedError, "change from each station"),
        ({"left.stiffness": [900.0, 800.0], "right.stiffness": 5.0}, None, ""),
        ({"left.stiffness": [900.0, 800.0, 1.0], "right.stiffness": 5.0}, ValueRefusedError, "as"),
        ({"tip_joint.v[vy]": 1.0}, ValueRefusedError, "functions of positions"),
    ]
    for along, kind, text in refused:
        if kind is None:
            fx.load_path(plant, along, context=context)
            continue
        with pytest.raises(kind, match=text):
            fx.load_path(plant, along, context=context)
    assert np.array_equal(context.get("tip_joint.q"), before)

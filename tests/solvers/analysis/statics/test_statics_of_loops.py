"""Mechanisms with loops at rest: paths, stiffness and buckling against potentials in one angle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.blocks.multibody.constraints.test_closed_loops import TURNED, rigid_four_bar
from tests.support.systems.foreign_blocks import Spline

Potential = Callable[[Any], Any]
UP = (0, -1, 0)
FOOT_STIFFNESS, RELAXED = 3.0, 1.2


def sloped(potential: Potential, at: Any, order: int = 1) -> Any:
    """Return a derivative of a function of one number by differences of the fourth order."""
    h = 2e-3
    f = {k: np.array([potential(each + k * h) for each in np.atleast_1d(at)]) for k in range(-2, 3)}
    if order == 1:
        return (f[-2] - 8.0 * f[-1] + 8.0 * f[1] - f[2]) / (12.0 * h)
    return (-f[-2] + 16.0 * f[-1] - 30.0 * f[0] + 16.0 * f[1] - f[2]) / (12.0 * h**2)


def rod(builder: fx.PlantBuilder, name: str, length: float) -> fx.Body:
    """Add a bar along x."""
    inertia = fx.SpatialInertia.thin_rod(1.0, length=length, axis="x")
    return builder.add_body(name, inertia, com=(0.5 * length, 0.0, 0.0))


def sprung_four_bar(
    cut: str = "pin", turned: Any = None, *, driven: bool = False, angle: float = 0.6
) -> tuple[fx.Plant, fx.Context]:
    """Build the four-bar of the closed form, with a torsion spring at the foot of its rocker."""
    R = np.eye(3) if turned is None else turned
    builder = fx.PlantBuilder("linkage", gravity=(0.0, 0.0, 0.0))
    crank, coupler, rocker = (
        rod(builder, name, length)
        for name, length in {"crank": 0.25, "coupler": 0.8, "rocker": 0.6}.items()
    )
    base = builder.add_frame("base", builder.world, (R, np.zeros(3)))
    side = builder.add_frame("side", builder.world, (R, R @ [0.9, 0.0, 0.0]))
    tip = builder.add_frame("tip", crank, (0.25, 0.0, 0.0))
    end = builder.add_frame("end", coupler, (0.8, 0.0, 0.0))
    top = builder.add_frame("top", rocker, (0.6, 0.0, 0.0))
    frames: dict[str, tuple[fx.Frame, Any]] = {"shaft": (base, crank), "knee": (tip, coupler)}
    frames |= {"foot": (side, rocker), "pin": (end, top)}
    for name, (F, M) in frames.items():
        joint = fx.RevoluteJoint(name, F, M, axis=UP)
        if name == cut:
            builder.add_loop_joint(joint)
        else:
            builder.add_joint(joint)
    foot = next(joint for joint in builder.joints if joint.name == "foot")
    spring = {"stiffness": FOOT_STIFFNESS, "nominal_position": RELAXED}
    builder.add_force_element(fx.JointSpring("spring", foot, **spring))
    if driven:
        shaft = next(joint for joint in builder.joints if joint.name == "shaft")
        builder.add_constraint(fx.constraints.PrescribedMotion("drive", shaft))
    plant = builder.build()
    context = plant.create_default_context()
    coupler_angle, rocker_angle = rigid_four_bar(angle)
    values = {"shaft": angle, "knee": coupler_angle - angle, "foot": rocker_angle}
    values["pin"] = rocker_angle - coupler_angle
    for name in values.keys() - {cut}:
        plant.joint(name).positions.set(context, [values[name]])
    if driven:
        context.set("drive", [angle, 0.0, 0.0])
    return plant, context


def in_foot(crank: float) -> Any:
    """Return the energy of the spring, by the angle of the crank."""
    return 0.5 * FOOT_STIFFNESS * (rigid_four_bar(crank)[1] - RELAXED) ** 2


@pytest.mark.parametrize(("cut", "turned"), [("pin", None), ("knee", TURNED)])
def test_the_torque_on_a_crank_is_the_slope_of_the_potential(cut: str, turned: Any) -> None:
    """Three equations of the loop are redundant."""
    plant, context = sprung_four_bar(cut, turned)
    path = fx.load_path(plant, {"shaft.angle": [0.6, 2.6]}, context=context)
    expected = sloped(in_foot, path["shaft.angle"])
    assert path.required["shaft.angle"] == pytest.approx(expected, abs=1e-8)
    assert np.max(np.abs(path[f"{cut}.error"])) < 1e-9
    assert path.stable.all()
    assert path.how == "exact derivatives"


@pytest.mark.full
def test_a_drive_needs_the_torque_that_holds_the_stroke() -> None:
    plant, context = sprung_four_bar(driven=True)
    path = fx.load_path(plant, {"drive[0]": [0.6, 2.6]}, context=context)
    assert path["shaft.angle"] == pytest.approx(path["drive[0]"], abs=1e-9)
    expected = sloped(in_foot, path["shaft.angle"])
    assert path["drive.multipliers"] == pytest.approx(expected, abs=1e-8)


def test_a_torque_turns_a_crank_to_where_the_potential_balances_it() -> None:
    """Through the extremes of the torque, where the load turns and the crank does not."""
    plant, context = sprung_four_bar(angle=0.5)
    rest = fx.equilibrium(plant, context).context
    path = fx.load_path(plant, {"generalized_force[0]": [0.0, 0.3]}, context=rest)
    angle, torque = path["shaft.angle"], path["generalized_force[0]"]
    assert sloped(in_foot, angle) == pytest.approx(torque, abs=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("load", [10.0, 1e12])
def test_a_load_beyond_all_equilibria_ends_with_its_limit_points(load: float) -> None:
    plant, context = sprung_four_bar(angle=0.5)
    rest = fx.equilibrium(plant, context).context
    with pytest.raises(
        fx.errors.EvaluationError, match=r"first limit point, .*generalized_force"
    ) as caught:
        fx.load_path(plant, {"generalized_force[0]": load}, context=rest, max_points=60)
    limit = caught.value.result.limit_points[0]  # type: ignore[attr-defined]
    torque = sloped(in_foot, np.linspace(2.2, 2.7, 201))
    assert limit.values["generalized_force[0]"] == pytest.approx(np.max(torque), rel=1e-5)


def test_the_stiffness_of_a_loop_is_the_curvature_wherever_it_is_cut() -> None:
    found = []
    for cut in ("pin", "knee", "shaft"):
        plant, context = sprung_four_bar(cut, TURNED, angle=1.0)
        at_crank = fx.stiffness(plant, "crank", context=context)
        rest = at_crank.context
        x, _, z = TURNED.T @ plant.body("crank").pose(rest).R @ [1.0, 0.0, 0.0]
        curvature = sloped(in_foot, np.arctan2(z, x), order=2)
        assert at_crank.matrix[1, 1] == pytest.approx(curvature[0], rel=1e-7)
        assert np.all(np.isinf(np.delete(np.diagonal(at_crank.matrix), 1)))
        found.append(fx.stiffness(plant, "coupler", context=rest, p_FP=(0.4, 0.1, 0.2)).compliance)
    assert found[1:] == pytest.approx(np.array([found[0]] * 2), rel=1e-9, abs=1e-12)


def column(spring: float = 5.0, length: float = 0.4) -> fx.Plant:
    """Build two upright bars with a spring in their knee; the upper end slides in a loop joint."""
    builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    lower, upper = (
        builder.add_body(name, fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
        for name in ("lower", "upper")
    )
    slider = builder.add_body("slider", fx.SpatialInertia.point_mass(1.0))
    tip = builder.add_frame("tip", lower, (0.0, 0.0, length))
    builder.add_joint(fx.RevoluteJoint("base", builder.world, lower, axis=(0, 1, 0)))
    knee = builder.add_joint(fx.RevoluteJoint("knee", tip, upper, axis=(0, 1, 0)))
    guide = builder.add_frame("guide", builder.world, (0.0, 0.0, 2.0 * length))
    slide = builder.add_joint(fx.PrismaticJoint("slide", guide, slider, axis=(0, 0, 1)))
    top = builder.add_frame("top", upper, (0.0, 0.0, length))
    builder.add_loop_joint(fx.RevoluteJoint("pin", top, slider, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", knee, stiffness=spring))
    builder.add_actuator("press", slide)
    return builder.build()


def test_a_column_in_a_guide_buckles_under_twice_its_stiffness_over_its_length() -> None:
    """V = k (2 θ)²/2 - P 2 L (1 - cos θ), and so P = 2 k/L, and P = 2 k/L θ/sin θ behind it."""
    plant = column()
    critical = 2.0 * 5.0 / 0.4
    (first,) = fx.buckling(plant, {"press": [-1.0]}, num_factors=1)
    assert first.factor == pytest.approx(critical, rel=1e-9)
    assert first.kind == "bifurcation"
    assert first.shape["base.angle"] / first.shape["knee.angle"] == pytest.approx(-0.5)
    path = fx.load_path(plant, {"press": [0.0, -1.1 * critical]}, branch=1)
    (point,) = path.branch_points
    assert -point.values["press"] == pytest.approx(critical, rel=1e-6)
    bent = np.abs(path["base.angle"]) > 1e-3
    angle, force = path["base.angle"][bent], -path["press"][bent]
    assert force == pytest.approx(critical * angle / np.sin(angle), rel=1e-9)
    assert path.stable[bent].all()
    straight = fx.load_path(plant, {"press": [0.0, -1.1 * critical]})
    assert straight.num_unstable[-1] == 1


def toggle(angle: float = 0.5, bar: float = 0.3, spring: float = 2e3) -> fx.Plant:
    """Build a toggle clamp: two bars, a pad that slides against a spring, a force on the knee."""
    builder = fx.PlantBuilder("clamp", gravity=(0.0, 0.0, 0.0))
    left, right = rod(builder, "left", bar), rod(builder, "right", bar)
    pad = builder.add_body("pad", fx.SpatialInertia.point_mass(1.0))
    knee = builder.add_frame("knee", left, (bar, 0.0, 0.0))
    start = builder.add_frame("start", builder.world, (2.0 * bar * np.cos(angle), 0.0, 0.0))
    first = builder.add_joint(fx.RevoluteJoint("first", builder.world, left, axis=UP))
    second = builder.add_joint(fx.RevoluteJoint("second", knee, right, axis=UP))
    slide = builder.add_joint(fx.PrismaticJoint("slide", start, pad, axis=(1, 0, 0)))
    first.default_angle, second.default_angle = angle, -2.0 * angle
    end = builder.add_frame("end", right, (bar, 0.0, 0.0))
    builder.add_loop_joint(fx.RevoluteJoint("pin", end, pad, axis=UP))
    builder.add_force_element(fx.JointSpring("spring", slide, stiffness=spring))
    builder.add_external_force("hand", right)
    builder.add_actuator("push", slide)
    return builder.build()


@pytest.mark.full
def test_a_toggle_clamp_snaps_through_where_the_cosine_is_the_cube_root() -> None:
    """P = 4 k L (cos θ - cos θ₀) tan θ, with its extremes at cos³ θ = cos θ₀."""
    plant, angle, bar, spring = toggle(), 0.5, 0.3, 2e3

    def force(at: Any) -> Any:
        return 4.0 * spring * bar * (np.cos(at) - np.cos(angle)) * np.tan(at)

    extreme = np.arccos(np.cos(angle) ** (1.0 / 3.0))
    path = fx.load_path(plant, {"hand[5]": [0.0, -1.5 * force(extreme)]})
    assert -path["hand[5]"] == pytest.approx(force(path["first.angle"]), abs=1e-6)
    loads = [-float(point.values["hand[5]"]) for point in path.limit_points]
    assert loads == pytest.approx([force(extreme), -force(extreme)], rel=1e-6)
    between = np.abs(path["first.angle"]) < extreme - 1e-3
    assert np.all(path.num_unstable == between)
    (first,) = fx.buckling(plant, {"hand": [0.0, 0.0, 0.0, 0.0, 0.0, -1.0]}, num_factors=1)
    assert first.kind == "limit"
    assert first.factor == pytest.approx(force(extreme), rel=1e-6)


def guide(length: float = 0.2, spring: float = 1.5) -> fx.Plant:
    """Build a stage on two parallel links with a spring in each of four hinges."""
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    stage = builder.add_body("stage", fx.SpatialInertia.point_mass(1.0))
    for k, x in enumerate((0.0, 0.3)):
        link = rod(builder, f"link{k}", length)
        foot = builder.add_frame(f"foot{k}", builder.world, (x, 0.0, 0.0))
        end = builder.add_frame(f"end{k}", link, (0.0, 0.0, length))
        seat = builder.add_frame(f"seat{k}", stage, (x, 0.0, 0.0))
        hinges = [fx.RevoluteJoint(f"lower{k}", foot, link, axis=UP)]
        builder.add_joint(hinges[0])
        if k:
            builder.add_loop_joint(fx.RevoluteJoint(f"upper{k}", seat, end, axis=UP))
        else:
            hinges.append(fx.RevoluteJoint(f"upper{k}", end, stage, axis=UP))
            builder.add_joint(hinges[1])
        for number, hinge in enumerate(hinges):
            builder.add_force_element(fx.JointSpring(f"spring{k}{number}", hinge, stiffness=spring))
    builder.add_external_force("push", stage)
    return builder.build()


def test_a_guide_of_rigid_links_is_as_stiff_as_its_springs() -> None:
    """V = 3 k θ²/2 with x = L sin θ, and a weight on the stage takes its part of the stiffness."""
    plant, length, spring = guide(), 0.2, 1.5
    found = fx.stiffness(plant, "stage")
    assert found.matrix[3, 3] == pytest.approx(3.0 * spring / length**2, rel=1e-12)
    path = fx.load_path(plant, {"stage.position[x]": [0.0, 0.1]})
    angle = np.arcsin(path["stage.position[x]"] / length)
    expected = 3.0 * spring * angle / (length * np.cos(angle))
    assert path.required["stage.position[x]"] == pytest.approx(expected, abs=1e-8)
    track = fx.track_stiffness(plant, "stage", {"push[5]": [0.0, -4.0]})
    assert track.matrices[:, 3, 3] * length**2 == pytest.approx(
        [3.0 * spring, 3.0 * spring - 4.0 * length], rel=1e-9
    )
    (first, *_) = fx.buckling(plant, {"push": [0.0, 0.0, 0.0, 0.0, 0.0, -1.0]})
    assert first.factor == pytest.approx(3.0 * spring / length, rel=1e-9)


def test_gears_add_their_springs_by_the_square_of_the_ratio() -> None:
    """Along the ratio as well, a parameter of the constraint."""
    builder = fx.PlantBuilder("gears", gravity=(0.0, 0.0, 0.0))
    shafts = []
    for k in range(2):
        wheel = builder.add_body(f"wheel{k}", fx.SpatialInertia.point_mass(1.0))
        shafts.append(fx.RevoluteJoint(f"shaft{k}", builder.world, wheel, axis=(0, 0, 1)))
        builder.add_joint(shafts[k])
        builder.add_force_element(fx.JointSpring(f"spring{k}", shafts[k], stiffness=2.0 + k))
    builder.add_constraint(fx.constraints.GearPair("gears", shafts[0], shafts[1], -2.5))
    plant = builder.build()
    found = fx.stiffness(plant, "wheel1")
    assert found.matrix[2, 2] == pytest.approx(3.0 + 2.0 * 2.5**2, rel=1e-12)
    context = plant.create_default_context()
    context.set("generalized_force", [0.0, 1.0])
    path = fx.load_path(plant, {"tree.gears_ratio": [-2.5, -4.0]}, context=context)
    ratio = path["tree.gears_ratio"]
    assert path["shaft1.angle"] == pytest.approx(1.0 / (3.0 + 2.0 * ratio**2), rel=1e-9)


def test_a_drive_behind_a_lag_comes_to_rest_where_that_does() -> None:
    plant, context = sprung_four_bar(driven=True)
    builder = fx.DiagramBuilder("driven")
    builder.add_all(plant, fx.FirstOrderLag("lag", 0.2), fx.Constant("still", [0.0, 0.0]))
    builder.add(fx.Multiplexer("motion", [1, 2]))
    builder.connect("lag.y", "motion.u1")
    builder.connect("still.y", "motion.u2")
    builder.connect("motion.y", "linkage.drive")
    builder.export_input("lag.u", name="wanted")
    builder.export_output("linkage.shaft.angle", name="angle")
    system = builder.build()
    start = system.create_default_context()
    start.set("wanted", 0.6)
    start.set("linkage.tree.x", context.get("tree.x"))
    path = fx.load_path(system, {"wanted": [0.6, 1.6]}, context=start)
    assert path["angle"] == pytest.approx(path["wanted"], abs=1e-9)
    expected = sloped(in_foot, path["angle"])
    assert path["linkage.drive.multipliers"] == pytest.approx(expected, abs=1e-7)


@pytest.mark.full
def test_a_loop_with_a_block_that_cannot_be_traced_is_followed_by_differences() -> None:
    """A spline of another program that pushes with 5 N per radian, or a gain in its place."""
    force, found = {"clamp.hand[5]": [0.0, -10.0]}, []
    for foreign in (True, False):
        builder = fx.DiagramBuilder("pushed")
        law = Spline("law", np.array) if foreign else fx.Gain("law", 1.0)
        builder.add_all(toggle(), law, fx.Gain("strength", 5.0))
        builder.connect_chain("clamp.first.angle", law, "strength", "clamp.push")
        builder.export_input("clamp.hand")
        found.append(fx.load_path(builder.build(), force))
    assert found[0].how.startswith("central differences")
    slides = [path["clamp.slide.translation"][-1] for path in found]
    assert slides[0] == pytest.approx(slides[1], rel=1e-6)


# Where the motion is not decided -----------------------------------------------------------------


def parallelogram(angle: float = 1.0) -> fx.Plant:
    """Build a parallelogram with springs at both shafts."""
    builder = fx.PlantBuilder("parallelogram", gravity=(0.0, 0.0, 0.0))
    crank, coupler, rocker = (
        rod(builder, name, length)
        for name, length in {"crank": 0.5, "coupler": 1.0, "rocker": 0.5}.items()
    )
    side = builder.add_frame("side", builder.world, (1.0, 0.0, 0.0))
    tip = builder.add_frame("tip", crank, (0.5, 0.0, 0.0))
    ends = (
        builder.add_frame("end", coupler, (1.0, 0.0, 0.0)),
        builder.add_frame("top", rocker, (0.5, 0.0, 0.0)),
    )
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=UP))
    knee = builder.add_joint(fx.RevoluteJoint("knee", tip, coupler, axis=UP))
    foot = builder.add_joint(fx.RevoluteJoint("foot", side, rocker, axis=UP))
    shaft.default_angle, knee.default_angle, foot.default_angle = angle, -angle, angle
    builder.add_loop_joint(fx.RevoluteJoint("pin", *ends, axis=UP))
    for joint in (shaft, foot):
        builder.add_force_element(fx.JointSpring(f"{joint.name}_spring", joint, stiffness=1.0))
    return builder.build()


@pytest.mark.parametrize("stations", [[1.0, -0.7], [1.0, 0.0, -0.7]], ids=["across", "onto"])
def test_a_path_goes_straight_through_a_change_point_and_names_it(stations: list[float]) -> None:
    path = fx.load_path(parallelogram(), {"shaft.angle": stations})
    (point,) = path.branch_points
    assert point.kind == "change point"
    assert point.values["shaft.angle"] == pytest.approx(0.0, abs=1e-6)
    assert path["foot.angle"] == pytest.approx(path["shaft.angle"], abs=1e-6)
    assert path.required["shaft.angle"] == pytest.approx(2.0 * path["shaft.angle"], abs=1e-6)


def test_a_path_leaves_a_parallelogram_at_its_change_point_as_a_crossed_one() -> None:
    """tan(foot/2) = -3 tan(shaft/2) for the bars 0.5, 1, 0.5, 1 in their crossed position."""
    path = fx.load_path(parallelogram(), {"shaft.angle": [1.0, -0.7]}, branch=1)
    behind = path["shaft.angle"] < -1e-3
    halves = np.tan(0.5 * path["foot.angle"][behind]), np.tan(0.5 * path["shaft.angle"][behind])
    assert behind.any()
    assert halves[0] == pytest.approx(-3.0 * halves[1], rel=1e-6)


def test_a_stroke_turns_back_at_a_dead_point_which_is_named() -> None:
    """Crank and coupler in one line, by the law of cosines."""
    plant, context = sprung_four_bar()
    start = rigid_four_bar(0.6)[1]
    with pytest.raises(fx.errors.EvaluationError, match="turns back at a dead point") as caught:
        fx.load_path(plant, {"foot.angle": [start, 3.0]}, context=context, max_points=60)
    path = caught.value.result  # type: ignore[attr-defined]
    reach = 0.8 - 0.25
    expected = np.pi - np.arccos((0.9**2 + 0.6**2 - reach**2) / (2.0 * 0.9 * 0.6))
    assert path.limit_points[0].kind == "dead point"
    assert path.limit_points[0].values["foot.angle"] == pytest.approx(expected, abs=1e-5)


def test_loops_that_stay_open_are_named() -> None:
    builder = fx.PlantBuilder("short", gravity=(0.0, 0.0, 0.0))
    bars = [rod(builder, name, 0.7) for name in ("left", "right")]
    far = builder.add_frame("far", builder.world, (3.0, 0.0, 0.0))
    builder.add_joint(fx.RevoluteJoint("left_hinge", builder.world, bars[0], axis=UP))
    builder.add_joint(fx.RevoluteJoint("right_hinge", far, bars[1], axis=UP))
    left, right = (builder.add_frame(f"{b.name}_end", b, (0.7, 0.0, 0.0)) for b in bars)
    builder.add_loop_joint(fx.RevoluteJoint("pin", left, right, axis=UP))
    builder.add_force_element(fx.JointSpring("spring", builder.joints[0], stiffness=1.0))
    plant = builder.build()
    calls: list[Callable[[], Any]] = [
        lambda: fx.stiffness(plant, "left"),
        lambda: fx.load_path(plant, {"spring.stiffness": [1.0, 2.0]}),
        lambda: fx.buckling(plant, {"generalized_force": [1.0, 0.0]}),
        lambda: fx.equilibrium(plant),
    ]
    for call in calls:
        with pytest.raises(fx.errors.EvaluationError, match=r"'pin'.* by 3"):
            call()


@pytest.mark.parametrize("angle", [0.0, 0.5, 2.2])
def test_a_table_welded_to_a_stage_is_as_stiff_as_the_stage(angle: float) -> None:
    """Rounding is all that is left of its own stiffness; it may start far away."""
    builder = fx.PlantBuilder("stage")
    box = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3))
    table, stage = (builder.add_body(name, box) for name in ("table", "stage"))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, table))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, stage, axis=(0, 0, 1)))
    builder.add_force_element(fx.JointSpring("spring", rail, stiffness=100.0))
    builder.add_loop_joint(fx.WeldJoint("screws", stage, table))
    plant = builder.build()
    context = plant.create_default_context()
    turn = fx.rotations.quaternion_from_axis_angle(np.array([0.6, 0.64, 0.48]), angle)
    free.positions.set(context, [*turn, 0.1 * angle, 0.0, 0.0])
    if angle > 1.0:
        for call in (
            lambda: fx.stiffness(plant, table, context=context),
            lambda: fx.load_path(plant, {"spring.stiffness": 120.0}, context=context),
        ):
            with pytest.raises(fx.errors.EvaluationError, match="'screws' the wrong way round"):
                call()
        return
    found = fx.stiffness(plant, table, context=context)
    assert found.free_motions == ()
    expected = np.diag([np.inf] * 5 + [100.0])
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-9, atol=1e-9)

"""Constraints stay met: after every step, of every method, in runs of any length, and after blows.

The other routes are dense solves with the mass matrix and the Jacobian, momentum, and energy.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.errors import SimulationError
from tests.blocks.multibody.constraints.test_closed_loops import TURNED, four_bar
from tests.blocks.multibody.constraints.test_known_mechanisms import bennett
from tests.blocks.multibody.constraints.test_rolling import sleigh
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import thinned

TOLERANCE = 0.9e-6  # of the linkage, whose longest link is 0.9 m


@pytest.fixture(scope="module")
def built() -> tuple[fx.Plant, fx.Context]:
    """Build the linkage of most tests once."""
    return four_bar(turned=TURNED)


def spinning(built: tuple[fx.Plant, fx.Context], speed: float) -> tuple[fx.Plant, fx.Context]:
    """Return a four-bar linkage without losses that goes round, with a context of its own."""
    linkage, context = built[0], built[1].clone()
    context.set("tree.shaft_damping", 0.0)
    linkage.joint("shaft").velocities.set(context, [speed])
    linkage.assemble(context, fixed="shaft")
    return linkage, context


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    thinned(
        [
            *({"method": m} for m in ("RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P")),
            *({"method": m, "compiled": "python"} for m in ("RK45", "Radau", "BDF", "LSODA")),
            {"method": "rk4", "step": 0.01},
            {"method": "semi_explicit_euler", "step": 0.002},
        ],
        fast=3,
    ),
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_method_keeps_a_linkage_closed_however_loose_it_is(
    built: tuple[fx.Plant, fx.Context], options: dict[str, Any]
) -> None:
    linkage, context = spinning(built, 6.0)
    loose: dict[str, Any] = {} if "step" in options else {"rtol": 1e-3}
    open_, closed = (
        fx.simulate(linkage, 0.5, context=with_tolerance(context, tolerance), **options, **loose)
        for tolerance in (np.inf, TOLERANCE)
    )
    assert np.max(np.abs(closed["pin.error"])) <= TOLERANCE
    assert np.max(np.abs(open_["pin.error"])) > 2.0 * TOLERANCE
    # What projections take out of the motion is less than what integration puts there.
    assert 0.0 < np.ptp(closed["ledger.works"][:, -1]) < np.ptp(open_["ledger.balance"])


def with_tolerance(context: fx.Context, tolerance: float) -> fx.Context:
    """Return a copy of a context with another tolerance of constraints."""
    other = context.clone()
    other.set("tree.constraint_tolerance", tolerance)
    return other


@pytest.mark.full
@needs_llvmlite
def test_ten_thousand_turns_leave_a_linkage_closed(built: tuple[fx.Plant, fx.Context]) -> None:
    linkage, context = spinning(built, 20.0)
    simulator = fx.Simulator(linkage, context.clone(), method="DOP853", rtol=1e-7)
    start = energy(linkage, simulator.context)
    for time in np.linspace(0.0, 2600.0, 14)[1:]:
        simulator.advance_to(float(time))
        error = linkage.output_port("pin.error").eval(simulator.context)
        assert np.max(np.abs(error)) <= TOLERANCE
    angles = [linkage.joint("shaft").positions.get(c)[0] for c in (context, simulator.context)]
    assert abs(angles[1] - angles[0]) > 1e4 * 2.0 * np.pi
    assert energy(linkage, simulator.context) == pytest.approx(start, rel=2e-3)  # 2e-7 a turn
    statistics = simulator.statistics
    assert statistics.native_steps == statistics.steps


def energy(linkage: fx.Plant, context: fx.Context) -> float:
    return float(linkage.calc_kinetic_energy(context) + linkage.calc_potential_energy(context))


def test_redundant_constraints_are_projected_as_well() -> None:
    plant, context = bennett()
    plant.set_positions(context, [1.0, 2.0, -1.0])
    plant.assemble(context, fixed="hinge0")
    plant.joint("hinge0").velocities.set(context, [1.0])
    plant.assemble(context, fixed="hinge0")
    tolerance = 1e-9
    context.set("tree.constraint_tolerance", tolerance)
    result = fx.simulate(plant, 3.0, context=context, rtol=1e-6)
    assert np.max(np.abs(result["closure.error"])) <= tolerance
    assert np.ptp(result["kinetic_energy"]) < 1e-3 * result["kinetic_energy"][0]


def two_bodies() -> tuple[fx.Plant, fx.Context]:
    """Return two bodies in space with a ball between them, that tumble."""
    builder = fx.PlantBuilder("pair", gravity=(0.0, 0.0, 0.0))
    boxes = [
        builder.add_body(name, fx.SpatialInertia.solid_box(mass=m, size=(0.4, 0.3, 0.2)))
        for name, m in (("a", 2.0), ("b", 3.0))
    ]
    joints = [
        builder.add_joint(fx.QuaternionFloatingJoint(f"free_{box.name}", builder.world, box))
        for box in boxes
    ]
    ends = [
        builder.add_frame(f"end_{box.name}", box, p)
        for box, p in zip(boxes, ((0.5, 0.1, 0.0), (-0.4, 0.0, 0.1)), strict=True)
    ]
    builder.add_loop_joint(fx.BallQuaternionJoint("ball", *ends))
    plant = builder.build()
    context = plant.create_default_context()
    for joint, v in zip(joints, ((3.0, 1.0, -2.0), (-1.0, 2.0, 4.0)), strict=True):
        joint.velocities.set(context, [*v, 0.3, -0.2, 0.1])
    plant.assemble(context)
    return plant, context


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["python", True])
def test_projections_of_bodies_in_space_keep_their_momentum(compiled: Any) -> None:
    plant, context = two_bodies()
    context.set("tree.constraint_tolerance", 1e-11)
    result = fx.simulate(plant, 2.0, context=context, rtol=1e-7, compiled=compiled)
    assert np.max(np.abs(result["ball.error"])) <= 1e-11
    momentum = result["momentum"]
    assert momentum == pytest.approx(np.tile(momentum[0], (len(momentum), 1)), abs=1e-5)
    assert np.ptp(result["kinetic_energy"]) < 1e-5 * result["kinetic_energy"][0]


def moved(plant: fx.Plant, context: fx.Context) -> tuple[Any, Any]:
    """Return the positions and velocities from which a motion sets out."""
    simulator = fx.Simulator(plant, context.clone(), record=True)
    simulator.advance_to(1e-9)
    x = simulator.history.pieces[0].states[0]  # type: ignore[union-attr]
    q, v = np.split(np.array(x), [plant.num_positions])
    return q, v


def test_a_blow_of_constraints_is_that_of_the_least_kinetic_energy() -> None:
    plant, context = two_bodies()
    context.set("tree.start_tolerance", 10.0)
    rng = np.random.default_rng(1)
    v = rng.normal(size=plant.num_velocities)
    plant.set_velocities(context, v)
    M, J = plant.calc_mass_matrix(context), calc_equations(plant.tree, context).J
    turned = np.linalg.solve(M, J.T)
    expected = v - turned @ np.linalg.solve(J @ turned, J @ v)
    _, found = moved(plant, context)
    assert found == pytest.approx(expected, abs=1e-9)
    before = plant.output_port("momentum").eval(context)
    plant.set_velocities(context, found)
    assert plant.output_port("momentum").eval(context) == pytest.approx(before, abs=1e-9)


def test_positions_are_moved_the_least_in_the_metric_of_the_masses() -> None:
    linkage, context = four_bar(turned=TURNED)
    q = linkage.get_positions(context)
    linkage.set_positions(context, q + 1e-4 * np.array([1.0, -2.0, 1.5]))
    start = linkage.get_positions(context)
    equations = calc_equations(linkage.tree, context)
    M, J = linkage.calc_mass_matrix(context), equations.J
    root = np.linalg.inv(np.linalg.cholesky(M).T)  # redundant rows are no matter to lstsq
    step = root @ np.linalg.lstsq(J @ root, -equations.errors, rcond=1e-9)[0]
    found, _ = moved(linkage, context)
    assert found == pytest.approx(start + step, abs=1e-7)
    linkage.set_positions(context, found)
    assert np.max(np.abs(calc_equations(linkage.tree, context).errors)) < 1e-8


@pytest.mark.parametrize("compiled", ["python", True])
def test_a_prescribed_motion_that_sets_off_at_once_takes_all_joints_along(compiled: Any) -> None:
    """A corner of the input is a blow; afterwards the linkage moves as it says."""
    builder = fx.PlantBuilder("gears", gravity=(0.0, 0.0, 0.0))
    disks = [
        builder.add_body(name, fx.SpatialInertia.solid_cylinder(1.0, radius=0.1, length=0.02))
        for name in ("a", "b")
    ]
    a, b = (
        builder.add_joint(fx.RevoluteJoint(f"axis_{d.name}", builder.world, d, axis=(0, 0, 1)))
        for d in disks
    )
    builder.add_constraint(fx.constraints.GearPair("gears", a, b, -3.0))
    builder.add_constraint(fx.constraints.PrescribedMotion("drive", a))
    plant = builder.build()
    diagram = fx.DiagramBuilder("driven")
    diagram.add(plant)
    diagram.add(fx.Ramp("angle", slope=2.0, start=1.0))
    diagram.add(fx.Step("rate", at=1.0, to=2.0))
    diagram.add(fx.Constant("none", 0.0))
    motion = diagram.add(fx.Multiplexer("motion", [1, 1, 1]))
    for name, port in zip(("angle", "rate", "none"), motion.input_ports, strict=True):
        diagram.connect(f"{name}.y", port)
    diagram.connect("motion.y", "gears.drive")
    driven = diagram.build()
    result = fx.simulate(driven, 2.0, compiled=compiled)
    times = np.array([0.5, 1.001, 1.5, 2.0])
    expected = 2.0 * np.maximum(times - 1.0, 0.0)
    assert result.sample("gears.axis_a.angle", times).ravel() == pytest.approx(expected, abs=1e-6)
    assert result.sample("gears.axis_b.angle", times).ravel() == pytest.approx(
        -expected / 3.0, abs=1e-6
    )


@pytest.mark.parametrize("method", thinned(["RK45", "DOP853", "Rodas5P", "BDF"], fast=1))
def test_a_knife_edge_does_not_slip(method: str) -> None:
    plant, context = sleigh("knife edge")
    tolerance = 1e-9
    context.set("tree.constraint_tolerance", tolerance)
    result = fx.simulate(plant, 3.0, context=context, method=method, rtol=1e-4)
    fastest = np.max(np.abs(result["tree.x"][:, 3:]))
    pace = float(context.get("tree.stabilization"))
    assert np.max(np.abs(result["blade.error"])) <= tolerance * (pace + fastest)


def stretched() -> tuple[fx.Plant, fx.Context]:
    """Return a parallelogram linkage, which is stretched out twice in a turn."""
    builder = fx.PlantBuilder("parallelogram", gravity=(0.0, 0.0, 0.0))
    sizes = {"crank": 0.3, "coupler": 0.8, "rocker": 0.3}
    bars = {
        name: builder.add_body(
            name, fx.SpatialInertia.thin_rod(1.0, length=size, axis="x"), com=(0.5 * size, 0, 0)
        )
        for name, size in sizes.items()
    }
    ends = {n: builder.add_frame(f"{n}_end", bars[n], (s, 0.0, 0.0)) for n, s in sizes.items()}
    foot = builder.add_frame("foot", builder.world, (0.8, 0.0, 0.0))
    up = (0, 0, 1)
    builder.add_joint(fx.RevoluteJoint("shaft", builder.world, bars["crank"], axis=up))
    builder.add_joint(fx.RevoluteJoint("knee", ends["crank"], bars["coupler"], axis=up))
    builder.add_joint(fx.RevoluteJoint("heel", foot, bars["rocker"], axis=up))
    builder.add_loop_joint(fx.RevoluteJoint("pin", ends["coupler"], ends["rocker"], axis=up))
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [1.0, -1.0, 1.0])
    plant.set_velocities(context, [3.0, -3.0, 3.0])
    return plant, context


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The state of 'parallelogram' misses")
@pytest.mark.parametrize("compiled", thinned(["python", True], fast=1))
def test_a_linkage_passes_positions_in_which_it_is_stretched_out(compiled: Any) -> None:
    plant, context = stretched()
    result = fx.simulate(plant, 5.0, context=context, rtol=1e-8, compiled=compiled)
    assert result["shaft.angle"][-1] == pytest.approx(16.0, abs=1e-4)
    assert np.max(np.abs(result["pin.error"])) < 1e-5


def test_a_linkage_that_is_flung_apart_ends_the_run_by_name(
    built: tuple[fx.Plant, fx.Context],
) -> None:
    linkage, context = spinning(built, 40.0)
    with pytest.raises(SimulationError, match=r"Cannot keep 'linkage' together.*'pin' open by"):
        fx.simulate(linkage, 2.0, context=context, method="euler", step=0.2)


def test_a_tolerance_below_rounding_is_blamed_itself() -> None:
    plant, context = stretched()
    context.set("tree.constraint_tolerance", 1e-300)
    with pytest.raises(SimulationError, match=r"rounding alone is \d.*Raise the tolerance"):
        fx.simulate(plant, 5.0, context=context, compiled="python")


def test_closures_that_contradict_each_other_are_said_once() -> None:
    """Two rods to one point, of which one is longer by a hundredth of a millimeter."""
    builder = fx.PlantBuilder("rods", gravity=(0.0, 0.0, -9.81))
    ball = fx.SpatialInertia.solid_sphere(mass=1.0, radius=0.1)
    bob = builder.add_body("bob", ball)
    builder.add_joint(fx.PlanarJoint("plane", builder.world, bob))
    for name, length in (("rod", 1.0), ("other", 1.00001)):
        builder.add_constraint(
            fx.constraints.DistanceConstraint(
                name, builder.world, (0, 0, 0), bob, (0, 0, 0), length
            )
        )
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [1.0, 0.0, 0.0])
    plant.set_velocities(context, [0.0, 1.0, 0.0])
    with pytest.warns(UserWarning, match=r"'rods' misses its tolerance.*'other' open") as said:
        result = fx.simulate(plant, 1.0, context=context)
    assert len(said) == 1
    place = result["bob.position"][-1]
    assert np.linalg.norm(place) == pytest.approx(1.0, abs=2e-5)


def test_what_projections_leave_near_a_singular_position_is_said_in_whole_sentences() -> None:
    length, y = 0.2, (0, 1, 0)
    builder = fx.PlantBuilder("slider", gravity=(0.0, 0.0, 0.0))
    moments = (5e-5, 2e-3, 2e-3)
    inertia = fx.SpatialInertia(0.5, com=(0.5 * length, 0.0, 0.0), inertia=moments)
    crank, rod = (builder.add_body(name, inertia) for name in ("crank", "rod"))
    block = builder.add_body("block", fx.SpatialInertia.solid_sphere(0.4, radius=0.05))
    elbow, end = (builder.add_frame(f"{b.name}_end", b, (length, 0, 0)) for b in (crank, rod))
    turn = builder.add_joint(fx.RevoluteJoint("turn", builder.world, crank, axis=y))
    bend = builder.add_joint(fx.RevoluteJoint("bend", elbow, rod, axis=y))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, block, axis=(1, 0, 0)))
    builder.add_loop_joint(fx.RevoluteJoint("pin", end, block, axis=y))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    for joint, value in ((turn, 0.4), (bend, -0.8), (slide, 2.0 * length * np.cos(0.4))):
        joint.positions.set(context, [value])
    turn.velocities.set(context, [4.0])
    plant.assemble(context, fixed="turn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fx.simulate(plant, 3.0, context=context, rtol=1e-8)
    texts = [str(each.message) for each in caught]
    assert all("found 'pin'" in text and "prescribed" not in text for text in texts), texts

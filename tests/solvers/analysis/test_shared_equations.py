"""Analyses of large plants by shared native code, beside the same equations written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.one_thread import _libraries, in_one_thread
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations import equations, shared_equations
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.native.emission import jacobian_emission
from tests.support.mechanics.beams import cantilever
from tests.support.native.native import needs_llvmlite

pytestmark = needs_llvmlite


def chain(count: int = 31) -> fx.Plant:
    """Return sliders side by side, tied to each other and to the ground, with a ledger."""
    builder = fx.PlantBuilder("chain")
    bodies, joints = [], []
    for k in range(count):
        bodies.append(builder.add_body(f"link{k}", fx.SpatialInertia.point_mass(0.1 + 0.01 * k)))
        joint = fx.PrismaticJoint(f"j{k}", builder.world, bodies[-1], axis=(0.0, 0.3, 1.0))
        joints.append(builder.add_joint(joint))
        builder.add_force_element(fx.JointSpring(f"s{k}", joint, stiffness=20.0 + k))
    for k in range(count - 1):
        ends = bodies[k], (0.1 * k, 0.0, 0.0), bodies[k + 1], (0.1 * k + 0.1, 0.0, 0.0)
        builder.add_force_element(
            fx.LinearSpringDamper(
                f"tie{k}", *ends, free_length=0.07, stiffness=9.0 + k, damping=0.2
            )
        )
    builder.add_external_force("load", bodies[-1])
    builder.add_actuator("motor", joints[0])
    builder.add_energy_ledger()
    return builder.build()


def controlled() -> fx.Diagram:
    """Return such sliders of which a controller holds the first."""
    builder = fx.DiagramBuilder("controlled")
    builder.add(chain())
    builder.add_all(
        fx.Constant("target", 0.05), fx.PIDController("pid", 9.0, 4.0, 1.0, derivative_filter=0.1)
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "chain.motor")
    builder.connect_chain("chain.j0.translation", "pid.measurement")
    builder.export_input("chain.load")
    return builder.build()


#: A system, inputs and outputs of its linear model, and openings.
MODELS: dict[str, Callable[[], tuple[fx.System, list[str], list[str], list[str]]]] = {
    "a beam": lambda: (
        cantilever(10, damping_time=0.01),
        ["load", "beam.length", "beam.youngs_modulus", "beam.damping_time"],
        ["tip.pose", "tip.spatial_velocity", "beam.stored_energy", "end.q"],
        [],
    ),
    "a beam in space": lambda: (
        cantilever(5, planar=False),
        ["load[1]", "load[4]", "beam.youngs_modulus"],
        ["tip.position", "end.q[qx]"],
        [],
    ),
    "links": lambda: (
        chain(),
        ["load", "s3.stiffness", "tie7.stiffness", "tie9.damping", "link4.mass", "motor"],
        ["link30.position", "mechanical_energy", "tie7.stored_energy", "j9.rate"],
        [],
    ),
    "an open loop": lambda: (
        controlled(),
        ["pid.u", "target.value", "pid.kp", "load[5]"],
        ["pid.u", "chain.j0.translation", "chain.link30.position[z]", "target.y"],
        ["pid.u"],
    ),
}


def moved(system: fx.System) -> fx.Context:
    """Return a context in which everything moves a little."""
    context = system.create_default_context()
    random = np.random.default_rng(3)
    x = context.continuous_state
    context.continuous_state = x + 0.01 * random.standard_normal(len(x))
    context.time = 0.3
    return context


def written_out(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any]) -> Any:
    """Return an answer for which nothing shares code."""
    with monkeypatch.context() as patch:
        patch.setattr(shared_equations, "_MANY", 10**9)
        patch.setattr(shared_equations, "_LONG", 10**9)
        return ask()


#: Bounds from which on code is shared, or native without being shared.
WAYS: dict[str, dict[str, int]] = {"shared": {}, "native": {"_MANY": 10**9, "_LONG": 0}}


def assert_alike(found: FloatArray, expected: FloatArray) -> None:
    size = np.max(np.abs(expected), axis=1, keepdims=True, initial=0.0)
    np.testing.assert_allclose(found / (size + 1e-12), expected / (size + 1e-12), atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_linear_models_are_those_of_equations_that_are_written_out(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, inputs, outputs, openings = MODELS[name]()
    context = moved(system)

    def ask() -> fx.LinearModel:
        return fx.linearize(system, context, inputs, outputs, openings=openings)

    expected = written_out(monkeypatch, ask)
    monkeypatch.setattr(equations, "TracedEquations", too_long)
    for bound, number in WAYS[way].items():
        monkeypatch.setattr(shared_equations, bound, number)
    found = ask()
    assert found.how == expected.how == "exact derivatives"
    for one, other in ((found.A, expected.A), (found.C, expected.C)):
        assert_alike(one, other)
    for one, other in ((found.B, expected.B), (found.D, expected.D)):
        for k in range(one.shape[1]):
            assert_alike(one[:, [k]].T, other[:, [k]].T)
    assert np.any(found.D) or name != "an open loop"


def too_long(*_: Any, **__: Any) -> Any:
    raise TraceError("Cannot trace more than 3 operations", found="more")


@pytest.mark.parametrize("way", WAYS)
def test_values_that_change_are_read_again(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, number in WAYS[way].items():
        monkeypatch.setattr(shared_equations, bound, number)
    count = 31 if way == "shared" else 5
    plant, shown = chain(count), [f"link{count - 1}.position"]
    context = plant.create_default_context()
    fx.linearize(plant, context, ["load"], shown)
    context.set("s3.stiffness", 50.0)
    found = fx.linearize(plant, context, ["load"], shown)
    again = chain(count)
    other = again.create_default_context()
    other.set("s3.stiffness", 50.0)
    expected = fx.linearize(again, other, ["load"], shown)
    np.testing.assert_array_equal(found.A, expected.A)


class Decay(fx.LeafSystem):
    """A rate and an output that depend on the same function of a parameter."""

    def __init__(self) -> None:
        super().__init__("decay")
        self.a = self.declare_numeric_parameter("a", 0.7)
        self.state = self.declare_continuous_state(z=2)
        self.declare_vector_output("y", 1, self.calc_output, prerequisites=[self.state, self.a])

    def calc_output(self, context: Any) -> Any:
        return np.sin(np.exp(self.a(context))) + self.state(context)[0]

    def calc_time_derivatives(self, context: Any) -> Any:
        one, other = self.state(context)
        return [-np.exp(self.a(context)) * one * other, -other]


def test_what_slopes_and_values_have_in_common_is_prepared_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_equations, "_LONG", 0)
    monkeypatch.setattr(jacobian_emission, "LONG", 0)
    found = fx.linearize(Decay(), inputs=[], outputs=["y"])
    assert found.how == "exact derivatives"
    assert found.y0 == pytest.approx([np.sin(np.exp(0.7))], rel=1e-14)


@pytest.mark.parametrize("held", [(), ("link30.position[z]", "j4.translation")])
def test_forces_at_rest_are_those_that_are_written_out(
    held: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = controlled()
    context = moved(system)

    def ask() -> Any:
        start = context.clone()
        ways = ["load", "chain.s7.stiffness", "pid.ki"]
        variables = find_variables(start, ways, "Cannot")
        places = [find_place(system, f"chain.{way}") for way in held]
        made = StaticEquations(start, variables, places, attempt="Cannot")
        assert made.how == "exact derivatives"
        reactions = np.array([3.0, -2.0])[: len(held)]
        return made.coordinates.names, made.point(reactions)

    names, expected = written_out(monkeypatch, ask)
    found_names, found = ask()
    assert found_names == names
    assert "pid.x[integral]" in names
    for part in ("forces", "stiffness", "loads", "strokes", "directions", "stroke_slopes"):
        one, other = (np.atleast_2d(getattr(point, part)) for point in (found, expected))
        assert_alike(one, other)


@pytest.mark.full
@pytest.mark.parametrize("planar", [True, False])
def test_paths_and_modes_of_beams_are_those_that_are_written_out(
    planar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    beam = cantilever(10 if planar else 5, planar=planar)
    load = {"load": [0.0, 0.0, 0.0, -1.0, 1.5, 0.0 if planar else 0.3]}

    def ask() -> Any:
        path = fx.load_path(beam, load)
        context = fx.equilibrium(beam, path.context(-1)).context
        poles = [mode.poles[0] for mode in fx.modes(beam, context)]
        return path["tip.position"][-1], np.array(poles), path.how

    tip, poles, _ = written_out(monkeypatch, ask)
    found, others, how = ask()
    assert how == "exact derivatives"
    np.testing.assert_allclose(found, tip, atol=1e-9)
    np.testing.assert_allclose(others, poles, rtol=1e-6)


def test_analyses_compute_in_one_thread_and_give_the_others_back() -> None:
    asked = [get for get, _ in _libraries()]
    before = [get() for get in asked]

    def inside(depth: int) -> list[int]:
        if depth:
            assert in_one_thread(inside)(depth - 1) == [1] * len(asked)
        return [get() for get in asked]

    assert in_one_thread(inside)(2) == [1] * len(asked)
    with pytest.raises(ZeroDivisionError):
        in_one_thread(lambda: 1 / 0)()
    assert [get() for get in asked] == before

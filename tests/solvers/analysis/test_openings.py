"""Linear models at the wires of a finished diagram, opened and closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError
from tests.support.mechanics.mechanics import GRAVITY, ForeignPendulum, Pendulum, servo
from tests.support.tiers import for_each

OMEGA = np.array([0.1, 1.5, 4.0, 30.0])
S = 1j * OMEGA
#: m l², damping and m g l of the pendulum.
PLANT = 1.0 / (0.5 * S**2 + 0.3 * S + 2.0 * GRAVITY * 0.5)
CONTROLLER = 60.0 + 20.0 / S + 12.0 * S / (0.01 * S + 1.0)


def response(model: fx.LinearModel) -> Any:
    assert model.D.shape == (1, 1)
    return model.frequency_response(OMEGA)[:, 0, 0]


def loop() -> fx.Diagram:
    return servo(derivative_filter=0.01)


# One loop ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["pid.u", "pendulum.torque", "pendulum.angle", "pid.measurement"])
def test_one_loop_has_the_same_gain_everywhere(at: str) -> None:
    gain = CONTROLLER * PLANT
    np.testing.assert_allclose(response(fx.loop_gain(loop(), at)), gain, rtol=1e-12)
    found = response(fx.sensitivity_function(loop(), at))
    np.testing.assert_allclose(found, 1.0 / (1.0 + gain), rtol=1e-11)
    found = response(fx.complementary_sensitivity(loop(), at))
    np.testing.assert_allclose(found, gain / (1.0 + gain), rtol=1e-11)


def test_what_disturbs_the_plant_is_rejected() -> None:
    model = fx.linearize(loop(), inputs=["pendulum.torque"], outputs=["pendulum.angle"])
    expected = PLANT / (1.0 + CONTROLLER * PLANT)
    np.testing.assert_allclose(response(model), expected, rtol=1e-11)
    assert (model.input_names, model.output_names) == (["pendulum.torque"], ["pendulum.angle"])
    assert model.u0.tolist() == [0.0]  # what is added to the torque


def test_an_output_port_shows_what_is_given_and_an_input_port_what_is_got() -> None:
    model = fx.linearize(loop(), inputs=["pid.u"], outputs=["pid.u", "pendulum.torque"])
    given, got = model.frequency_response(OMEGA)[:, :, 0].T
    np.testing.assert_allclose(got, given + 1.0)


def test_behind_an_opening_the_signal_stays_what_it_is() -> None:
    diagram = loop()
    context = diagram.create_default_context()
    context.set("pendulum.x", [0.3, 0.0])
    model = fx.linearize(diagram, context, ["target.value"], ["pid.u"], openings=["pendulum.angle"])
    expected = 60.0 + 20.0 / S  # the derivative is that of the measurement
    np.testing.assert_allclose(response(model), expected, rtol=1e-12)
    torque = fx.linearize(diagram, context, ["pendulum.torque"], [], openings="pendulum.torque")
    assert torque.u0 == context.get("pid.u")
    assert context.get("pendulum.angle") == 0.3


@pytest.mark.parametrize("stiffness", [0.0, 2.0e3])
def test_the_derivative_of_a_cubic_spring_is_right_to_twelve_digits(stiffness: float) -> None:
    """At 1 um, where differences over 1 um are wrong by up to 7/3."""
    builder = fx.DiagramBuilder("cubic")
    builder.add_all(
        fx.FunctionBlock("spring", lambda x: -stiffness * x - 5.0e14 * x**3),
        fx.Integrator("x", initial=1e-6),
    )
    builder.connect_chain("spring", "x", "spring")
    diagram = builder.build()
    expected = stiffness + 3.0 * 5.0e14 * 1e-6**2
    gain = response(fx.loop_gain(diagram, "spring.y"))
    np.testing.assert_allclose(gain * S, expected, rtol=1e-12)
    model = fx.linearize(diagram)
    assert model.how == "exact derivatives"
    np.testing.assert_allclose(model.A, [[-expected]], rtol=1e-12)


def test_what_cannot_be_traced_is_opened_by_differences() -> None:
    builder = fx.DiagramBuilder("servo")
    pid = fx.PIDController("pid", 60.0, 20.0, 12.0, derivative_filter=0.01)
    builder.add_all(fx.Constant("target", 0.0), pid, ForeignPendulum())
    builder.connect_chain("target", "pid.setpoint")
    builder.connect("pid.u", "pendulum.torque")
    builder.connect("pendulum.angle", "pid.measurement")
    model = fx.loop_gain(builder.build(), "pid.u")
    assert model.how.startswith("central differences")
    np.testing.assert_allclose(response(model), CONTROLLER * PLANT, rtol=1e-7)


# Several wires -----------------------------------------------------------------------------------


def branching() -> fx.Diagram:
    """A source that two blocks read, one of them in a diagram inside."""
    inner = fx.DiagramBuilder("inner")
    inner.add_all(fx.Gain("first", 2.0), fx.Gain("second", 5.0))
    inner.export_input("first.u", "second.u", name="u")
    inner.export_output("first.y", name="a")
    inner.export_output("second.y", name="b")
    builder = fx.DiagramBuilder("branching")
    builder.add_all(
        fx.Constant("drive", 1.0),
        fx.FirstOrderLag("source", time_constant=1.0),
        inner.build(),
        fx.Gain("third", 7.0),
    )
    builder.connect("drive.y", "source.u")
    builder.connect("source.y", "inner.u")
    builder.connect("source.y", "third.u")
    for name in ("inner.a", "inner.b", "third.y"):
        builder.export_output(name, name=name.replace(".", "_"))
    return builder.build()


@for_each(
    ("at", "expected"),
    [
        ("source.y", [2.0, 5.0, 7.0]),
        ("inner.u", [2.0, 5.0, 0.0]),
        ("inner.second.u", [0.0, 5.0, 0.0]),
        ("third.u", [0.0, 0.0, 7.0]),
    ],
)
def test_an_input_port_is_cut_off_alone_and_an_output_port_from_all_readers(
    at: str, expected: list[float]
) -> None:
    for openings in ([], [at]):
        model = fx.linearize(branching(), inputs=[at], openings=openings)
        assert model.D[:, 0].tolist() == expected
        kept = [
            0.0 if openings and gain else whole
            for gain, whole in zip(expected, (2, 5, 7), strict=True)
        ]
        assert model.C[:, 0].tolist() == kept


def test_cuts_one_behind_the_other_are_all_there() -> None:
    ways = ["source.y", "inner.u", "inner.second.u"]
    model = fx.linearize(branching(), inputs=ways, outputs=["inner.second.u"])
    assert model.D.tolist() == [[1.0, 1.0, 1.0]]
    model = fx.linearize(branching(), None, ways, ["inner.second.u"], openings=["inner.u"])
    assert model.D.tolist() == [[0.0, 1.0, 1.0]]
    assert model.C.tolist() == [[0.0]]


def test_an_output_of_the_whole_diagram_stands_for_the_wire_inside() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("controller", -3.0), fx.Integrator("plant"))
    builder.connect_chain("controller", "plant", "controller")
    builder.export_output("plant.y", name="position")
    gain = fx.loop_gain(builder.build(), "position")
    np.testing.assert_allclose(response(gain), 3.0 / S)


def test_components_of_a_wire_are_opened_alone() -> None:
    builder = fx.DiagramBuilder("loop")
    feedback = fx.MatrixGain("feedback", [[-1.0, -2.0]])
    plant = fx.StateSpace("plant", [[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], np.eye(2))
    builder.add_all(feedback, plant)
    builder.connect_chain("feedback", "plant", "feedback")
    diagram = builder.build()
    rate_open = fx.linearize(diagram, inputs=[], outputs=[], openings=["plant.y[1]"])
    assert rate_open.A.tolist() == [[0.0, 1.0], [-1.0, 0.0]]
    gain = response(fx.loop_gain(diagram, "plant.y[1]"))
    np.testing.assert_allclose(gain, 2.0 * S / (S**2 + 1.0))
    gain = response(fx.loop_gain(diagram, "feedback.u[0]"))
    np.testing.assert_allclose(gain, 1.0 / (S**2 + 2.0 * S))


@pytest.mark.full
@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**31))
def test_loops_of_random_blocks_are_those_of_diagrams_wired_open(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def blocks() -> list[fx.StateSpace]:
        draw = np.random.default_rng(seed)
        sizes = (("a", m, n), ("b", n, m))
        return [
            fx.StateSpace(
                name,
                draw.normal(size=(2, 2)) - 2.0 * np.eye(2),
                draw.normal(size=(2, inputs)),
                draw.normal(size=(outputs, 2)),
                draw.normal(size=(outputs, inputs)) if name == "a" else None,
            )
            for name, inputs, outputs in sizes
        ]

    closed, opened = fx.DiagramBuilder("closed"), fx.DiagramBuilder("opened")
    for builder in (closed, opened):
        builder.add_all(*blocks())
        builder.connect("a.y", "b.u")
    closed.connect("b.y", "a.u")
    opened.export_input("a.u", name="u")
    opened.export_output("b.y", name="y")
    plant = opened.build()
    context = plant.create_default_context()
    context.set("u", np.zeros(m))
    expected = fx.linearize(plant, context)
    diagram = closed.build()
    for at in ("a.u", "b.y"):
        found = fx.loop_gain(diagram, at)
        for mine, theirs in ((found.A, expected.A), (found.B, expected.B)):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(-found.C, expected.C)
    omega = rng.uniform(0.1, 10.0, 5)
    for at in ("a.u", "b.u", "a.y", "b.y"):
        gain = fx.loop_gain(diagram, at).frequency_response(omega)
        identity = np.eye(gain.shape[-1])
        inverse = np.linalg.inv(identity + gain)
        for found, expected_ in (
            (fx.sensitivity_function(diagram, at), inverse),
            (fx.complementary_sensitivity(diagram, at), identity - inverse),
        ):
            np.testing.assert_allclose(
                found.frequency_response(omega), expected_, rtol=1e-8, atol=1e-8
            )


# Refusals ----------------------------------------------------------------------------------------


@for_each(
    ("attempt", "text"),
    [
        (lambda: fx.loop_gain(loop(), "pid.output"), "no .*'output'|Cannot find"),
        (lambda: fx.loop_gain(loop(), "pid.kp"), "a port that carries a vector"),
        (lambda: fx.loop_gain(Pendulum(), "torque"), "which nothing feeds"),
        (lambda: fx.loop_gain(Pendulum(), "angle"), "which no block reads"),
        (lambda: fx.linearize(loop(), inputs=["pendulum.position"]), "which no block reads"),
        (lambda: fx.linearize(loop(), inputs=["pid.u", "pid.u"]), "every name once"),
        (lambda: fx.linearize(loop(), openings=["pid.x"]), "a port that carries a vector"),
        (lambda: fx.linearize(loop(), openings=[3]), "Cannot find a value by 3"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_wire_is_refused(attempt: Callable[[], object], text: str) -> None:
    with pytest.raises(UnknownNameError, match=text):
        attempt()


@pytest.mark.parametrize(
    "function", [fx.loop_gain, fx.sensitivity_function, fx.complementary_sensitivity]
)
@pytest.mark.parametrize(
    ("make", "at", "found"),
    [
        (loop, "pid.x", "the continuous state 'pid.x'"),
        (loop, "pid.kp", "the parameter 'pid.kp'"),
        (Pendulum, "torque", "the input port 'pendulum.torque', which nothing feeds"),
    ],
)
def test_loops_are_only_at_wires(
    function: Callable[..., object], make: Callable[[], fx.System], at: str, found: str
) -> None:
    """Nothing comes back to a free port: a sensitivity there would be twice the signal."""
    system = make()
    context = system.create_default_context()
    text = f"^Cannot analyze a loop of .* at '{at}': .* from one block to another; found {found}"
    with pytest.raises(UnknownNameError, match=text):
        function(system, at, context=context)

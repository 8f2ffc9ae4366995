"""Linear models are the exact derivatives of a diagram, or say how they were found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.tracing import compile_limits
from tests.support.mechanics.mechanics import GRAVITY, ForeignPendulum, Pendulum, servo


def at(pendulum: Pendulum, angle: float, rate: float = 0.0, torque: float = 0.0) -> fx.Context:
    context = pendulum.create_default_context()
    pendulum.state.set(context, [angle, rate])
    pendulum.torque.fix(context, torque)
    return context


# Matrices ----------------------------------------------------------------------------------------


def test_a_pendulum_has_the_matrices_of_the_textbook() -> None:
    pendulum = Pendulum()
    model = fx.linearize(pendulum, at(pendulum, 0.6, 0.2, 1.5))
    inertia = 2.0 * 0.5**2
    np.testing.assert_allclose(
        model.A, [[0.0, 1.0], [-GRAVITY / 0.5 * math.cos(0.6), -0.3 / inertia]], rtol=1e-15
    )
    np.testing.assert_allclose(model.B, [[0.0], [1.0 / inertia]], rtol=1e-15)
    np.testing.assert_allclose(model.C, [[1.0, 0.0], [0.5 * math.cos(0.6), 0.0]], rtol=1e-15)
    assert model.D.tolist() == [[0.0], [0.0]]
    assert model.x0.tolist() == [0.6, 0.2]
    assert model.u0.tolist() == [1.5]
    np.testing.assert_allclose(model.y0, [0.6, 0.5 * math.sin(0.6)])
    expected = (1.5 - 0.3 * 0.2) / inertia - GRAVITY / 0.5 * math.sin(0.6)
    np.testing.assert_allclose(model.xdot0, [0.2, expected])
    assert model.how == "exact derivatives"
    assert model.state_names == ["x[angle]", "x[rate]"]
    assert (model.input_names, model.output_names) == (["torque"], ["angle", "position"])


@given(st.integers(1, 4), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2**31))
def test_a_state_space_block_is_its_own_linear_model(n: int, m: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=shape) for shape in ((n, n), (n, m), (p, n), (p, m))]
    block = fx.StateSpace("block", *matrices)
    context = block.create_default_context()
    block.x.set(context, rng.normal(size=n))
    if block.u is not None:
        context.set("u", rng.normal(size=m))
    model = fx.linearize(block, context)
    for found, expected in zip((model.A, model.B, model.C, model.D), matrices, strict=True):
        assert found.tolist() == expected.tolist()
    again = model.to_state_space("again")
    assert again.A.default.tolist() == matrices[0].tolist()


def test_a_closed_loop_has_the_poles_of_its_polynomial() -> None:
    diagram = servo(derivative_filter=0.01)
    context = diagram.create_default_context()
    model = fx.linearize(diagram, context, inputs=["target.value"], outputs=["pendulum.angle"])
    # s (τ s + 1) (I s² + b s + m g l) + kp s (τ s + 1) + ki (τ s + 1) + kd s²
    inertia, torque, filtered = 0.5, 2.0 * GRAVITY * 0.5, np.array([0.01, 1.0])
    plant = np.array([inertia, 0.3, torque])
    polynomial = np.polymul([1.0, 0.0], np.polymul(filtered, plant))
    for gain in (60.0 * np.array([1.0, 0.0]), 20.0 * np.array([1.0])):
        polynomial = np.polyadd(polynomial, np.polymul(filtered, gain))
    polynomial = np.polyadd(polynomial, [12.0, 0.0, 0.0])
    expected = np.roots(polynomial)
    expected = expected[np.lexsort((expected.imag, -expected.real))]
    np.testing.assert_allclose(model.poles, expected, rtol=1e-9)
    assert model.is_stable
    np.testing.assert_allclose(model.frequency_response(0.0), [[1.0]], rtol=1e-12)


def test_a_component_of_a_parameter_is_an_input() -> None:
    system = fx.StateSpace("system", [[0.0, 1.0], [-4.0, -0.5]], [0.0, 1.0], [1.0, 0.0])
    context = system.create_default_context()
    context.set("x", [3.0, -1.0])
    context.set("u", 0.5)
    model = fx.linearize(system, context, inputs=["A[1,0]", "u[0]"])
    assert model.input_names == ["A[1, 0]", "u"]
    assert model.B.tolist() == [[0.0, 0.0], [3.0, 1.0]]
    assert model.u0.tolist() == [-4.0, 0.5]


def test_names_tell_the_components() -> None:
    diagram = servo()
    model = fx.linearize(diagram, inputs=["target.value", "pid.kp"], outputs=["pid.u"])
    assert model.input_names == ["target.value", "pid.kp"]
    assert model.state_names[:2] == ["pid.x[integral]", "pid.x[filtered]"]
    assert model.output_names == ["pid.u"]


def test_a_parameter_as_input_counts_with_all_entries() -> None:
    block = fx.StateSpace("block", [[-1.0, 2.0], [0.0, -3.0]], [0.0, 1.0], [1.0, 0.0])
    context = block.create_default_context()
    block.x.set(context, [5.0, 7.0])
    context.set("u", 0.0)
    model = fx.linearize(block, context, inputs=[block.A, "u"])
    assert model.B.tolist() == [[5.0, 7.0, 0.0, 0.0, 0.0], [0.0, 0.0, 5.0, 7.0, 1.0]]
    assert model.input_names == ["A[0, 0]", "A[0, 1]", "A[1, 0]", "A[1, 1]", "u"]
    assert model.u0.tolist() == [-1.0, 2.0, 0.0, -3.0, 0.0]


def test_a_free_port_of_a_block_inside_can_be_an_input() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(fx.Gain("gain", 3.0), fx.Integrator("sum"))
    builder.connect_chain("gain", "sum")
    builder.export_input("gain.u", name="command")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("command", 2.0)
    for entry in ("command", "gain.u", diagram.find("gain.u")):
        model = fx.linearize(diagram, context, inputs=[entry], outputs=["sum.y"])
        assert (model.B.tolist(), model.u0.tolist()) == ([[3.0]], [2.0])


@pytest.mark.parametrize(("position", "slope"), [(0.5, 1.0), (1.0, 1.0), (1.5, 0.0)])
def test_a_saturation_has_the_slope_inside_at_its_limits(position: float, slope: float) -> None:
    block = fx.Saturation("limits", -1.0, 1.0)
    context = block.create_default_context()
    block.u.fix(context, position)
    assert fx.linearize(block, context).D.tolist() == [[slope]]


def test_a_system_without_states_inputs_or_outputs_has_empty_matrices() -> None:
    gain = fx.Gain("gain", 2.0)
    context = gain.create_default_context()
    gain.u.fix(context, 1.0)
    model = fx.linearize(gain, context)
    assert (model.A.shape, model.B.shape, model.C.shape) == ((0, 0), (0, 1), (1, 0))
    assert model.frequency_response([0.0, 1.0]).tolist() == [[[2.0]], [[2.0]]]
    assert model.is_stable
    free = fx.StateSpace("free", [[-2.0]], [[]], [[1.0]])
    assert fx.linearize(free, outputs=[]).C.shape == (0, 1)
    assert fx.linearize(free).frequency_response(1.0).shape == (1, 0)


def test_the_context_stays_as_it_is() -> None:
    pendulum = Pendulum()
    context = at(pendulum, 0.6, 0.2, 1.5)
    before = context.clone()
    fx.linearize(pendulum, context, inputs=["torque", "length"])
    assert context == before


@pytest.mark.full
@given(st.permutations(range(3)), st.floats(-1.0, 1.0))
def test_the_order_of_blocks_only_permutes_the_states(order: list[int], angle: float) -> None:
    def poles(order: list[int]) -> Any:
        blocks = [fx.Constant("target", 0.3), fx.PIDController("pid", 9.0, 2.0), Pendulum()]
        builder = fx.DiagramBuilder("loop")
        builder.add_all(*[blocks[k] for k in order])
        builder.connect_chain("target", "pid.setpoint")
        builder.connect_chain("pid", "pendulum.torque")
        builder.connect("pendulum.angle", "pid.measurement")
        diagram = builder.build()
        context = diagram.create_default_context()
        context.set("pendulum.x", [angle, 0.0])
        return fx.linearize(diagram, context).poles

    np.testing.assert_allclose(poles(order), poles([0, 1, 2]), rtol=1e-9)


# Differences -------------------------------------------------------------------------------------


def test_untraceable_equations_are_differentiated_by_differences_and_say_so() -> None:
    exact, foreign = Pendulum(), ForeignPendulum()
    first = fx.linearize(exact, at(exact, 0.6, 0.2, 1.5), inputs=["torque", "length"])
    second = fx.linearize(foreign, at(foreign, 0.6, 0.2, 1.5), inputs=["torque", "length"])
    for name in "ABCD":
        np.testing.assert_allclose(
            getattr(second, name), getattr(first, name), rtol=1e-7, atol=1e-7
        )
    assert second.how.startswith("central differences, because cannot use a symbol as float()")
    assert "if float(self.state(context)[0]) > 1e9" in second.how


def test_equations_with_a_hidden_state_are_not_called_exact() -> None:
    calls = iter(range(10**6))
    block = fx.FunctionBlock("block", lambda u: u + next(calls))
    context = block.create_default_context()
    context.set("u", 1.0)
    assert "tracing the equations gave other numbers" in fx.linearize(block, context).how


# What is made of the model -----------------------------------------------------------------------


def test_the_frequency_response_is_that_of_the_transfer_function() -> None:
    numerator, denominator = [2.0, 1.0], [1.0, 0.4, 4.0]
    block = fx.TransferFunction("block", numerator, denominator)
    context = block.create_default_context()
    block.u.fix(context, 0.0)
    model = fx.linearize(block, context)
    omega = np.array([[0.0, 0.5], [2.0, 50.0]])
    expected = np.polyval(numerator, 1j * omega) / np.polyval(denominator, 1j * omega)
    found = model.frequency_response(omega)
    assert found.shape == (2, 2, 1, 1)
    np.testing.assert_allclose(found[..., 0, 0], expected, rtol=1e-13)


def test_the_affine_block_moves_like_the_diagram_near_the_point() -> None:
    pendulum = Pendulum()
    context = at(pendulum, 0.6, 0.0, 1.5)
    block = fx.linearize(pendulum, context).to_affine_system("near")
    near = block.create_default_context()
    near.set("u", 1.5)
    true = fx.simulate(pendulum, 0.02, context=context, rtol=1e-10)
    linear = fx.simulate(block, 0.02, context=near, rtol=1e-10)
    np.testing.assert_allclose(linear["y"][0], [true["angle"][0], true["position"][0]])
    np.testing.assert_allclose(linear["y"][-1][0], true["angle"][-1], rtol=1e-6)


def test_the_state_space_block_holds_deviations() -> None:
    pendulum = Pendulum()
    model = fx.linearize(pendulum, at(pendulum, 0.6), inputs=["torque"], outputs=["angle"])
    block = model.to_state_space("deviation")
    assert block.create_default_context().get("x").tolist() == [0.0, 0.0]
    assert (block.A.default.tolist(), block.C.default.tolist()) == (
        model.A.tolist(),
        model.C.tolist(),
    )


def test_a_model_without_states_is_no_block() -> None:
    gain = fx.Gain("gain", 2.0)
    context = gain.create_default_context()
    gain.u.fix(context, 1.0)
    with pytest.raises(DeclarationError, match="at least one state"):
        fx.linearize(gain, context).to_state_space("none")


@pytest.mark.parametrize(("damping", "stable"), [(0.3, True), (0.0, False), (-0.3, False)])
def test_stability_follows_the_damping(damping: float, stable: bool) -> None:
    pendulum = Pendulum()
    context = at(pendulum, 0.0)
    pendulum.damping.set(context, damping)
    model = fx.linearize(pendulum, context)
    assert model.is_stable == stable
    assert ("not stable" in repr(model)) != stable


# Refusals ----------------------------------------------------------------------------------------


def test_an_input_that_is_not_fixed_is_named() -> None:
    with pytest.raises(EvaluationError, match=r"'pendulum\.torque'.*fix\(context, value\)"):
        fx.linearize(Pendulum())


def sampled() -> fx.Diagram:
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(fx.Integrator("plant"), fx.ZeroOrderHold("hold", 0.1), fx.Gain("gain", -1.0))
    builder.connect_chain("plant", "hold", "gain", "plant.u")
    return builder.build()


def test_a_sampled_loop_is_refused_with_its_block() -> None:
    with pytest.raises(EvaluationError, match="the sampled block 'hold', which follows"):
        fx.linearize(sampled())


def test_sampled_noise_counts_as_constant() -> None:
    builder = fx.DiagramBuilder("noisy")
    builder.add_all(fx.Noise("noise", 7, 0.1), fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain("noise", "lag")
    assert fx.linearize(builder.build()).A.tolist() == [[-2.0]]


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a state as input": (
        lambda: fx.linearize(servo(), inputs=["pendulum.x"]),
        UnknownNameError,
        "a free input port that carries a vector, or a numeric parameter",
    ),
    "an unknown input": (
        lambda: fx.linearize(servo(), inputs=["pid.kpp"]),
        UnknownNameError,
        "Did you mean 'kp'",
    ),
    "an input named twice": (
        lambda: fx.linearize(servo(), inputs=["pid.kp", "pid.kp"]),
        UnknownNameError,
        "every name once",
    ),
    "a parameter as output": (
        lambda: fx.linearize(servo(), outputs=["pid.kp"]),
        UnknownNameError,
        "a port that carries a vector",
    ),
    "no handle at all": (
        lambda: fx.linearize(servo(), outputs=[3]),  # type: ignore[list-item]
        UnknownNameError,
        "Cannot find a value by 3",
    ),
    "a context of another system": (
        lambda: fx.linearize(servo(), servo().create_default_context()),
        ContextError,
        "a root context of the same system",
    ),
    "a pole on the axis": (
        lambda: fx.linearize(fx.StateSpace("i", [[0.0]], [[]], [[1.0]])).frequency_response(0.0),
        ValueRefusedError,
        "frequencies without a pole",
    ),
    "an infinite frequency": (
        lambda: fx.linearize(fx.StateSpace("i", [[0.0]], [[]], [[1.0]])).frequency_response(np.inf),
        ValueRefusedError,
        "finite frequencies",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_says_what_is_wrong(name: str) -> None:
    attempt, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        attempt()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (np.sqrt, r"inf as the derivative of y by u"),
        (lambda u: 1.0 / u, r"y = inf"),
    ],
)
def test_an_infinite_slope_or_value_is_named(function: Callable[[Any], Any], text: str) -> None:
    block = fx.FunctionBlock("block", function)
    context = block.create_default_context()
    context.set("u", 0.0)
    with pytest.raises(EvaluationError, match=text):
        fx.linearize(block, context)


def test_a_jacobian_of_too_many_operations_is_replaced_by_differences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = (["target.value"], ["pendulum.angle"])
    exact = fx.linearize(servo(derivative_filter=0.01), None, *ports)
    monkeypatch.setattr(compile_limits, "TRACED", 80)  # the equations themselves are not as many
    rough = fx.linearize(servo(derivative_filter=0.01), None, *ports)
    assert rough.how.startswith("central differences, because cannot trace more than 80 operations")
    np.testing.assert_allclose(rough.A, exact.A, rtol=1e-6, atol=1e-5)


class Foreign(fx.LeafSystem):
    """x' = sin(u[0]) - x³, y = cos(x) u[1], by functions that no symbol goes through."""

    knows = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[0.4])
        self.u = self.declare_vector_input("u", 2)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.x, self.u])

    def calc_y(self, context: Any) -> Any:
        return math.cos(self.x(context)[0]) * float(self.u(context)[1])

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.k(context) * math.sin(self.u(context)[0]) - float(self.x(context)[0]) ** 3]

    def calc_slopes(self, context: Any, output: Any) -> Any:
        x, (u, v) = self.x(context)[0], self.u(context)
        if not self.knows:
            return None
        if output is None:
            return np.array([[-3.0 * x * x]]), np.array([[math.cos(u), 0.0]])
        return np.array([[-math.sin(x) * v]]), np.array([[0.0, math.cos(x)]])


def foreign_loop(kind: type[Foreign]) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("w", 0.7),
        fx.Multiplexer("both", [1, 1]),
        kind("foreign"),
        fx.FunctionBlock("square", lambda u: u * u),
        kind("second"),
        fx.FirstOrderLag("lag", 0.5),
    )
    builder.connect("lag.y", "both.u1")
    builder.connect("w.y", "both.u2")
    builder.connect("both.y", "foreign.u")
    builder.connect_chain("foreign", "square", "lag")
    builder.connect("both.y", "second.u")
    return builder.build()


def test_blocks_that_cannot_be_traced_give_their_own_derivatives() -> None:
    class Silent(Foreign):
        knows = False

    ports: Any = {"inputs": ["w.value"], "outputs": ["second.y", "square.y"]}
    model = fx.linearize(foreign_loop(Foreign), **ports)
    assert model.how == "exact derivatives, own ones of 'foreign', 'second'"
    rough = fx.linearize(foreign_loop(Silent), **ports)
    assert rough.how.startswith("central differences")
    for name in "ABCD":
        np.testing.assert_allclose(getattr(model, name), getattr(rough, name), atol=1e-9)
    slope = 2.0 * (math.cos(0.4) * 0.7) * -math.sin(0.4) * 0.7  # of the square by the state
    assert model.C[1, model.state_names.index("foreign.x")] == pytest.approx(slope, rel=1e-14)
    by_parameter = fx.linearize(foreign_loop(Foreign), inputs=["foreign.k"], outputs=["lag.y"])
    assert by_parameter.how.startswith("central differences")

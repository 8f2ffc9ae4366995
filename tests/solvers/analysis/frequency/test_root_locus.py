"""Poles and zeros in the plane, and root loci over parameters of diagrams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.signal import cont2discrete

import flexure as fx
from tests.solvers.analysis.frequency.test_frequency_plots import covered, data, texts
from tests.support.systems.linear_models import free_model, transfer_model


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def loop(denominator: list[float]) -> fx.Diagram:
    """A plant 1/p(s) with feedback k: its poles are the roots of p(s) + k."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("k", -1.0), fx.TransferFunction("plant", [1.0], denominator))
    builder.connect_chain("k", "plant", "k")
    return builder.build()


# Poles and zeros --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        ([1.0, 3.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ([1.0], [1.0, 0.0, 0.0, 0.0, 0.0]),
        ([1.0, 2.0, 50.0], [1.0, 1.0, 100.0, 50.0]),
        ([2.0, 4.0], [1.0, 3.0]),
        ([1e-6, 1e-3], [1.0, 2e4, 1e8]),
    ],
)
def test_zeros_are_the_roots_of_the_numerator_and_none_at_infinity(
    numerator: list[float], denominator: list[float]
) -> None:
    zeros = transfer_model(numerator, denominator).zeros
    np.testing.assert_allclose(np.poly(zeros), np.array(numerator) / numerator[0], rtol=1e-7)


def test_transmission_zeros_of_several_inputs_are_where_the_determinant_vanishes() -> None:
    rng = np.random.default_rng(3)
    A, B, C = rng.normal(size=(5, 5)), rng.normal(size=(5, 2)), rng.normal(size=(2, 5))
    model = free_model(fx.StateSpace("block", A, B, C, np.zeros((2, 2))))
    zeros = model.zeros
    assert len(zeros) == 3
    for s in zeros:
        G = C @ np.linalg.solve(s * np.eye(5) - A, B)
        assert abs(np.linalg.det(G)) < 1e-9 * np.linalg.norm(G) ** 2


def test_models_that_are_not_square_or_give_nothing_have_no_zeros_of_their_own() -> None:
    B, C = np.array([[1.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    model = free_model(fx.StateSpace("block", np.diag([-1.0, -2.0]), B, C, np.zeros((2, 1))))
    assert model.zeros.size == 0
    assert replace(model, C=0.0 * model.C).zeros.size == 0
    assert free_model(fx.Gain("gain", 2.0)).zeros.size == 0


def test_poles_are_crosses_and_zeros_circles() -> None:
    ax = fx.pole_zero(transfer_model([1.0, 4.0], [1.0, 2.0, 10.0]), units="Hz")
    poles, zeros = ax.lines[:2]
    assert (poles.get_marker(), zeros.get_marker()) == ("x", "o")
    x, y = data(poles)
    np.testing.assert_allclose(2.0 * np.pi * x, -1.0)
    np.testing.assert_allclose(np.sort(2.0 * np.pi * y), [-3.0, 3.0])
    np.testing.assert_allclose(2.0 * np.pi * data(zeros)[0], -4.0)
    assert ax.get_xlabel() == "real part [Hz]"
    assert "ζ = 0.3" in texts(ax)


def test_rays_of_the_grid_have_their_damping_ratio() -> None:
    ax = fx.pole_zero(transfer_model([1.0], [1.0, 2.0, 10.0]))
    dashed = [data(line) for line in ax.lines if line.get_linestyle() == "--"]
    ratios = sorted(round(float(-x[0] / np.hypot(x[0], y[0])), 9) for x, y in dashed)
    assert ratios == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def test_sampled_models_are_drawn_over_the_unit_circle() -> None:
    ax = fx.pole_zero({"a": transfer_model([1.0], [1.0, -0.5], 0.1)})
    assert ax.get_xlabel() == "real part of z"
    circles = [np.hypot(*data(line)) for line in ax.lines if len(data(line)[0]) == 361]
    np.testing.assert_allclose(circles, 1.0)
    zeta = 0.5  # of exp(s T) along s = -ζ w + j w √(1 - ζ²)
    logs = [np.log(data(li)[0] + 1j * data(li)[1])[1:-1] for li in ax.lines
            if li.get_linestyle() == "--"]  # fmt: skip
    assert any(np.allclose(-s.real / np.abs(s), zeta) for s in logs)


def test_models_without_ports_have_poles() -> None:
    system = loop([1.0, 2.0, 0.0])
    ax = fx.pole_zero([fx.linearize(system), fx.linearize(system)])
    assert data(ax.lines[0])[0].size == 2


def test_continuous_and_sampled_models_are_not_mixed() -> None:
    models = [transfer_model([1.0], [1.0, 1.0]), transfer_model([1.0], [1.0, 0.5], 0.1)]
    with pytest.raises(fx.errors.ValueRefusedError, match="all continuous or all sampled"):
        fx.pole_zero(models)


# Root loci --------------------------------------------------------------------------------------


def test_poles_over_a_gain_are_the_roots_of_the_known_polynomial() -> None:
    values = -np.linspace(0.05, 10.0, 25)
    locus = fx.root_locus(loop([1.0, 3.0, 2.0, 0.0]), "k.gain", values)
    assert locus.poles.shape == (25, 3)
    for value, poles in zip(locus.values, locus.poles, strict=True):
        np.testing.assert_allclose(np.poly(poles), [1.0, 3.0, 2.0, -value], atol=1e-12)
    np.testing.assert_array_equal(locus.values, values)
    assert set(values) <= set(locus.fine_values)
    assert len(locus.fine_values) > len(values)  # around the point where two poles meet
    steps = np.abs(np.diff(locus.fine_poles, axis=0))
    assert steps.max() < 0.4


def crossing() -> fx.Diagram:
    """Two lags side by side, of which one has the pole -1."""
    builder = fx.DiagramBuilder("pair")
    builder.add_all(fx.FirstOrderLag("a", 1.0), fx.FirstOrderLag("b", 1.0))
    builder.add_all(fx.Constant("zero", 0.0))
    builder.connect("zero.y", "a.u")
    builder.connect("zero.y", "b.u")
    return builder.build()


@pytest.mark.parametrize("count", [2, 3, 4, 11])
def test_branches_cross_without_a_change_of_places(count: int) -> None:
    values = np.linspace(0.5, 2.1, count)
    locus = fx.root_locus(crossing(), "a.time_constant", values)
    expected = np.column_stack([-1.0 / values, -np.ones(count)])
    order = np.argsort(np.abs(locus.poles[0] + 1.0))[::-1]
    np.testing.assert_allclose(locus.poles[:, order], expected, rtol=1e-12)


class Pendulum(fx.LeafSystem):
    """q̈ = torque - 0.2 q̇ - sin q."""

    def __init__(self) -> None:
        super().__init__("pendulum")
        self.state = self.declare_continuous_state(q=1, v=1, element_names=["angle", "rate"])
        self.torque = self.declare_vector_input("torque", 1, default=0.0)

    def calc_time_derivatives(self, context: fx.Context) -> object:
        angle, rate = self.state(context)
        return [rate, self.torque(context) - 0.2 * rate - np.sin(angle)]


class SwingingPendulum(Pendulum):
    """One whose angle is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.angle = self.declare_vector_output("angle", 1, self.state.q)


def test_each_value_has_its_own_equilibrium() -> None:
    pendulum = Pendulum()
    context = pendulum.create_default_context()
    before = context.to_dict()
    torque = np.linspace(0.0, 0.9, 7)
    locus = fx.root_locus(pendulum, "torque", torque, context=context)
    for value, poles in zip(torque, locus.poles, strict=True):
        stiffness = np.cos(np.arcsin(value))
        np.testing.assert_allclose(np.poly(poles), [1.0, 0.2, stiffness], rtol=1e-8)
    assert context.to_dict() == before


def sampled_loop(*behind: fx.System) -> fx.Diagram:
    """A plant 1/(s² + s) with feedback k, sampled at 2 Hz, and what else follows the plant."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("k", -1.0),
        fx.ZeroOrderHold("hold", 0.5),
        fx.TransferFunction("plant", [1.0], [1.0, 1.0, 0.0]),
        *behind,
    )
    builder.connect_chain("k", "hold", "plant", *behind)
    builder.connect("plant.y", "k.u")
    return builder.build()


def test_poles_of_a_sampled_loop_are_the_roots_of_its_polynomial_in_z() -> None:
    values = np.linspace(-0.05, -4.0, 12)
    locus = fx.root_locus(sampled_loop(), "k.gain", values, period=0.5)
    assert locus.period == 0.5
    parts = cont2discrete((np.array([1.0]), np.array([1.0, 1.0, 0.0])), 0.5)
    for value, poles in zip(values, locus.poles, strict=True):
        polynomial = np.asarray(parts[1] - value * parts[0][0])
        expected = np.append(polynomial, 0.0)  # the hold keeps nothing
        np.testing.assert_allclose(np.poly(poles), expected, atol=1e-12)


def test_poles_that_are_gone_after_a_sample_need_no_values_in_between() -> None:
    delays = [fx.UnitDelay(f"delay_{k}", 0.5) for k in range(3)]
    values = np.linspace(-0.05, -4.0, 12)
    locus = fx.root_locus(sampled_loop(*delays), "k.gain", values, period=0.5)
    assert locus.poles.shape == (12, 9)
    assert len(locus.fine_values) < 30


@pytest.mark.full
def test_a_sampled_locus_is_drawn_over_the_unit_circle() -> None:
    locus = fx.root_locus(sampled_loop(), "k.gain", [-0.1, -1.0, -4.0], period=0.5)
    ax = locus.plot(marks=[-1.0], units="Hz")
    assert ax.get_xlabel() == "real part of z"
    assert {"-0.1", "-1", "-4", "0.2 π/T", "ζ = 0.3"} <= set(texts(ax))
    assert covered(ax) == []
    ends = [data(line) for line in ax.lines if line.get_marker() == "s"]
    np.testing.assert_allclose([x[0] + 1j * y[0] for x, y in ends], locus.poles[-1])


def sampled_servo(plant: fx.LeafSystem) -> fx.Diagram:
    builder = fx.DiagramBuilder("servo")
    pid = fx.PIDController("pid", kp=1.5, ki=0.8, kd=0.5, period=0.1)
    builder.add_all(fx.Constant("target", 0.0), pid, plant)
    builder.connect_chain("target", "pid.setpoint")
    builder.connect("pid.u", plant.input_ports[0])
    builder.connect(plant.output_ports[0], "pid.measurement")
    return builder.build()


def test_each_value_of_a_sampled_loop_has_its_own_equilibrium() -> None:
    angles = [0.0, 0.4, 0.8]
    pendulum = sampled_servo(SwingingPendulum())
    locus = fx.root_locus(pendulum, "target.value", angles, period=0.1)
    for angle, poles in zip(angles, locus.poles, strict=True):
        linear = fx.TransferFunction("linear", [1.0], [1.0, 0.2, np.cos(angle)])
        model = fx.linearize(sampled_servo(linear), None, [], [], period=0.1)
        np.testing.assert_allclose(np.poly(poles), np.poly(model.poles), atol=1e-9)


def test_ends_and_chosen_values_are_labelled_and_cover_no_branch() -> None:
    values = [-0.2, -2.0, -6.0, -10.0]
    ax = fx.root_locus(loop([1.0, 3.0, 2.0, 0.0]), "k.gain", values).plot(marks=[-6.0])
    found = texts(ax)
    assert [found.count(f"{value:g}") for value in values] == [3, 0, 2, 2]
    assert covered(ax) == []
    assert ax.get_title() == "poles over k.gain"


def test_bad_questions_are_refused() -> None:
    system = loop([1.0, 2.0, 0.0])
    refused = fx.errors.ValueRefusedError
    for values in ([], [1.0], 1.0, [[1.0, 2.0]], [1.0, np.nan], "text"):
        with pytest.raises(refused):
            fx.root_locus(system, "k.gain", values)
    with pytest.raises(fx.errors.UnknownNameError, match="Did you mean 'gain'"):
        fx.root_locus(system, "k.gian", [1.0, 2.0])
    with pytest.raises(fx.errors.UnknownNameError, match="a numeric parameter or a free"):
        fx.root_locus(system, "plant.x", [1.0, 2.0])
    with pytest.raises(fx.errors.ContextError):
        fx.root_locus(system, "k.u", [1.0, 2.0])
    with pytest.raises(refused, match="one number"):
        fx.root_locus(fx.StateSpace("block", -np.eye(2), np.eye(2), np.eye(2)), "A", [1.0, 2.0])
    with pytest.raises(refused, match="continuous states"):
        fx.root_locus(fx.Gain("gain", 1.0), "gain", [1.0, 2.0])
    with pytest.raises(refused, match="states"):
        fx.root_locus(fx.Gain("gain", 1.0), "gain", [1.0, 2.0], period=0.1)
    with pytest.raises(fx.errors.EvaluationError, match=r"sampled block 'hold'.*Pass period="):
        fx.root_locus(sampled_loop(), "k.gain", [-1.0, -2.0])
    with pytest.raises(
        fx.errors.EvaluationError, match=r"^Cannot follow .* 'k.gain' at -1: .*=0\.3 s and 'hold"
    ):
        fx.root_locus(sampled_loop(), "k.gain", [-1.0, -2.0], period=0.3)
    with pytest.raises(refused, match="found -1"):
        fx.root_locus(fx.FirstOrderLag("lag", time_constant=1.0), "time_constant", [1.0, -1.0])
    locus = fx.root_locus(system, "k.gain", [-1.0, -2.0])
    with pytest.raises(refused, match=r"marks among the values of 'k\.gain'"):
        locus.plot(marks=[-1.5])

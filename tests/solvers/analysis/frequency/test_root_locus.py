"""Poles and zeros in the plane, and root loci over parameters of diagrams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import flexure as fx
from tests.solvers.analysis.frequency.test_frequency_plots import covered, data, texts
from tests.support.linear_models import free_model, transfer_model


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


def test_each_value_has_its_own_equilibrium() -> None:
    pendulum = Pendulum()
    context = pendulum.create_default_context()
    before = context.to_dict()
    torque = np.linspace(0.0, 0.9, 7)
    locus = fx.root_locus(pendulum, "torque", torque, context)
    for value, poles in zip(torque, locus.poles, strict=True):
        stiffness = np.cos(np.arcsin(value))
        np.testing.assert_allclose(np.poly(poles), [1.0, 0.2, stiffness], rtol=1e-8)
    assert context.to_dict() == before


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
    with pytest.raises(refused, match="found -1"):
        fx.root_locus(fx.FirstOrderLag("lag", time_constant=1.0), "time_constant", [1.0, -1.0])
    locus = fx.root_locus(system, "k.gain", [-1.0, -2.0])
    with pytest.raises(refused, match=r"marks among the values of 'k\.gain'"):
        locus.plot(marks=[-1.5])

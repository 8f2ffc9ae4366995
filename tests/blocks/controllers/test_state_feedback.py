"""State feedback and observers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import flexure as fx
from flexure.blocks.controllers.state_feedback import (
    LuenbergerObserver,
    StateFeedback,
)
from flexure.diagrams.checks.errors import DeclarationError
from tests.support.tiers import for_each

Integrate = Callable[[fx.Context, float], fx.Context]

A = np.array([[0.0, 1.0], [2.0, -0.5]])
B = np.array([[0.0], [1.5]])
C = np.array([[1.0, 0.0]])


def test_feedback_opposes_the_state_and_follows_its_reference() -> None:
    K, N = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]]), np.array([[2.0], [5.0]])
    block = StateFeedback("feedback", K, N)
    context = block.create_default_context()
    block.state.fix(context, [1.0, 2.0, -1.0])
    block.reference.fix(context, 3.0)
    assert block.u.eval(context).tolist() == [6.0 - 2.0, 15.0 + 6.0]
    assert block.feedthrough == {("state", "u"), ("reference", "u")}


def test_feedback_without_a_reference_gain_adds_the_reference_itself() -> None:
    block = StateFeedback("feedback", [2.0, 0.5])
    context = block.create_default_context()
    block.state.fix(context, [1.0, 4.0])
    assert block.u.eval(context).tolist() == [-4.0]
    block.reference.fix(context, 10.0)
    assert block.u.eval(context).tolist() == [6.0]


def test_feedback_gains_can_be_set() -> None:
    block = StateFeedback("feedback", [2.0, 0.5], 1.0)
    context = block.create_default_context()
    block.state.fix(context, [1.0, 4.0])
    block.reference.fix(context, 10.0)
    block.gain.set(context, [[1.0, 1.0]])
    block.reference_gain.set(context, [[3.0]])
    assert block.u.eval(context).tolist() == [25.0]


def test_feedback_refuses_gains_that_do_not_fit() -> None:
    with pytest.raises(DeclarationError, match="2 x any matrix for reference_gain"):
        StateFeedback("feedback", np.eye(2), np.ones((3, 1)))
    with pytest.raises(DeclarationError, match="real numbers for gain"):
        StateFeedback("feedback", "strong")


@pytest.mark.parametrize("direct", [None, 0.8])
def test_the_error_of_the_estimate_decays_with_the_chosen_eigenvalues(
    direct: float | None, integrate: Integrate
) -> None:
    L = scipy.signal.place_poles(A.T, C.T, [-3.0, -4.0]).gain_matrix.T
    start = np.array([0.3, -0.2])
    builder = fx.DiagramBuilder("estimation")
    builder.add_all(
        fx.Sine("force", 2.0, 1.3),
        fx.StateSpace("plant", A, B, C, direct, initial=start),
        LuenbergerObserver("observer", A, B, C, direct, gain=L),
    )
    builder.connect("force.y", "plant.u")
    builder.connect("force.y", "observer.u")
    builder.connect("plant.y", "observer.y")
    context = integrate(builder.build().create_default_context(), 0.9)
    error = context.get("plant.x") - context.get("observer.estimate")
    np.testing.assert_allclose(error, scipy.linalg.expm(0.9 * (A - L @ C)) @ start, rtol=1e-7)


def test_observer_and_feedback_stabilize_an_unstable_plant(integrate: Integrate) -> None:
    K = scipy.signal.place_poles(A, B, [-2.0, -2.5]).gain_matrix
    L = scipy.signal.place_poles(A.T, C.T, [-6.0, -7.0]).gain_matrix.T
    builder = fx.DiagramBuilder("compensator")
    builder.add_all(
        fx.StateSpace("plant", A, B, C, initial=[1.0, 0.0]),
        LuenbergerObserver("observer", A, B, C, gain=L),
        StateFeedback("feedback", K),
    )
    builder.connect_chain("plant", "observer.y", "feedback.state", "plant.u")
    builder.connect("feedback.u", "observer.u")
    context = integrate(builder.build().create_default_context(), 12.0)
    np.testing.assert_allclose(context.get("plant.x"), 0.0, atol=1e-6)


def test_observer_equation_and_parameters() -> None:
    block = LuenbergerObserver("observer", A, B, C, 2.0, gain=[1.0, 3.0], initial=[0.5, -1.0])
    context = block.create_default_context()
    block.find("u").fix(context, 4.0)
    block.y.fix(context, 1.0)
    x = np.array([0.5, -1.0])
    surprise = 1.0 - (0.5 + 8.0)
    expected = A @ x + B[:, 0] * 4.0 + np.array([1.0, 3.0]) * surprise
    np.testing.assert_allclose(block.eval_time_derivatives(context), expected, rtol=1e-14)
    block.gain.set(context, [[0.0], [0.0]])
    np.testing.assert_allclose(
        block.eval_time_derivatives(context), A @ x + B[:, 0] * 4.0, rtol=1e-14
    )
    assert block.estimate.eval(context).tolist() == [0.5, -1.0]
    assert block.feedthrough == frozenset()


def test_observer_of_a_system_without_inputs_has_one_input() -> None:
    block = LuenbergerObserver("observer", A, np.zeros((2, 0)), C, gain=[1.0, 1.0])
    assert [port.name for port in block.input_ports] == ["y"]


@for_each("gain", [[1.0, 2.0, 3.0], np.ones((2, 2)), 1.0])
def test_observer_refuses_gains_that_do_not_fit(gain: Any) -> None:
    with pytest.raises(DeclarationError, match="2 x 1 matrix for gain"):
        LuenbergerObserver("observer", A, B, C, gain=gain)


# Around a point ----------------------------------------------------------------------------------


def test_feedback_around_a_point_gives_the_input_of_that_point() -> None:
    block = StateFeedback("feedback", [2.0, 0.5], x0=[1.0, -1.0], u0=3.0)
    context = block.create_default_context()
    block.state.fix(context, [1.0, -1.0])
    assert block.u.eval(context).tolist() == [3.0]
    block.state.fix(context, [1.5, -1.0])
    block.reference.fix(context, 0.25)
    assert block.u.eval(context).tolist() == [2.25]


def test_observers_with_offsets_follow_an_affine_system(integrate: Integrate) -> None:
    f0, y0 = [0.4, -0.3], [0.7]
    start = [0.3, -0.2]
    builder = fx.DiagramBuilder("estimation")
    builder.add_all(
        fx.Sine("force", 2.0, 1.3),
        fx.AffineSystem("plant", A, B, f0, C, 0.8, y0, initial=start),
        LuenbergerObserver("observer", A, B, C, 0.8, gain=[3.0, 1.0], f0=f0, y0=y0, initial=start),
    )
    builder.connect_chain("force", "plant", "observer.y")
    builder.connect("force.y", "observer.u")
    context = integrate(builder.build().create_default_context(), 0.9)
    np.testing.assert_allclose(
        context.get("observer.estimate"), context.get("plant.x"), rtol=1e-8, atol=1e-10
    )


def test_the_sampled_observer_knows_the_present_sample() -> None:
    """The error decays by (I - L C) A; feedback acts as if the state were known; rest stays."""
    period, K, L = 0.2, np.array([[4.0, 2.0]]), np.array([[0.6], [0.9]])
    held = scipy.signal.cont2discrete((A, B, C, [[0.8]]), period)[:4]
    f0 = np.array([0.4, -0.3])
    rest = -np.linalg.solve(A, f0)
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.AffineSystem("plant", A, B, f0, C, 0.8, [0.7], initial=rest),
        LuenbergerObserver(
            "observer",
            *held,
            gain=L,
            period=period,
            initial=rest,
            f0=rest - held[0] @ rest,
            y0=0.7,
        ),
        StateFeedback("feedback", K, x0=rest, u0=0.0),
    )
    builder.connect_chain("plant", "observer.y", "feedback.state", "plant.u")
    builder.connect("feedback.u", "observer.u")
    diagram = builder.build()
    poles = fx.linearize(diagram, inputs=[], outputs=[], period=period).poles
    expected = np.concatenate(
        [
            np.linalg.eigvals(held[0] - held[1] @ K),
            np.linalg.eigvals((np.eye(2) - L @ held[2]) @ held[0]),
        ]
    )
    np.testing.assert_allclose(np.sort_complex(poles), np.sort_complex(expected), rtol=1e-9)
    result = fx.simulate(diagram, 3 * period)
    estimates = np.asarray(result["observer.estimate"])
    np.testing.assert_allclose(estimates, np.broadcast_to(rest, estimates.shape), rtol=1e-12)

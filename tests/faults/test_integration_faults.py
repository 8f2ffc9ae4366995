"""Whatever is wrong with the equations, every method ends, and says what it found and where.

Each test runs against an alarm: a method that spins for ever fails instead of blocking the others.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import LSODA, RK45

import flexure as fx
from flexure.diagrams.checks.errors import (
    EvaluationError,
    NonFiniteError,
    NoProgressError,
    SimulationError,
    StepSizeError,
)
from flexure.solvers.integration.guard.integration import Segment, Stop, TakenStep, integrate
from flexure.solvers.integration.guard.progress_limits import Limits, Pace
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step, is_implicit
from tests.support.systems.simulation import TRIED_METHODS, Flow
from tests.support.tiers import for_each, thinned

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]

pytestmark = pytest.mark.timeout(20, method="signal")

ADAPTIVE = [name for name in METHOD_NAMES if not is_fixed_step(name)]
EXPLICIT_FIXED = ["euler", "semi_explicit_euler", "rk2", "rk4"]
STEP = 0.01
every_method = pytest.mark.parametrize("method", [m for m in METHOD_NAMES if m in TRIED_METHODS])
adaptive = pytest.mark.parametrize("method", [m for m in ADAPTIVE if m in TRIED_METHODS])


def run(rhs: RightHandSide, x0: list[float], t_end: float, method: str, **given: Any) -> Segment:
    if is_fixed_step(method):
        given["options"] = {"step": STEP}
        if method == "semi_explicit_euler":
            given["options"]["positions"] = [0]
    return integrate(rhs, 0.0, x0, t_end, method=method, **given)


def assert_tells(error: SimulationError, method: str, time: float) -> None:
    """Check that an error names the method, the time, what was expected, found, and a remedy."""
    assert error.time == pytest.approx(time, abs=1.5 * STEP)
    assert error.attempt == f"Cannot integrate past t = {error.time:.9g} s with {method}"
    assert error.expected
    assert error.found
    assert error.remedy


# NaN and infinity -------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_derivative_that_is_never_finite(method: str, bad: float) -> None:
    steps: list[TakenStep] = []
    with pytest.raises(NonFiniteError) as caught:
        run(lambda t, x: np.array([0.0, bad]), [1.0, 2.0], 1.0, method, on_step=steps.append)
    assert_tells(caught.value, method, 0.0)
    assert caught.value.expected == "finite derivatives"
    assert caught.value.found == f"xdot[1] = {bad} where x[1] = 2"
    assert steps == []


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_derivative_that_stops_being_finite(method: str, bad: float) -> None:
    last: list[TakenStep] = []
    with pytest.raises(NonFiniteError) as caught:
        run(lambda t, x: -x if t < 0.5 else bad * x, [1.0], 1.0, method, on_step=last.append)
    assert_tells(caught.value, method, 0.5)
    assert caught.value.found is not None
    assert f"xdot[0] = {bad} where x[0] = 0.6" in caught.value.found
    assert last[-1].t == pytest.approx(0.5, abs=1.5 * STEP)
    assert last[-1].x == pytest.approx([np.exp(-0.5)], abs=STEP)


@every_method
def test_one_derivative_of_many_stops_being_finite_with_the_state(method: str) -> None:
    def rhs(t: float, x: Array) -> Array:
        return np.array([1.0, np.nan if x[0] > 1.0 else -x[1], -x[2]])

    with pytest.raises(NonFiniteError) as caught:
        run(rhs, [0.0, 1.0, 1.0], 3.0, method)
    assert_tells(caught.value, method, 1.0)
    assert caught.value.found is not None
    assert caught.value.found.startswith("xdot[1] = nan where x[1] = 0.3")


@every_method
def test_a_root_that_leaves_its_domain_for_good(method: str) -> None:
    with pytest.raises(NonFiniteError) as caught:
        run(lambda t, x: -np.sqrt(x), [1.0], 3.0, method)
    assert caught.value.time == pytest.approx(2.0, abs=0.1)
    assert caught.value.found is not None
    assert caught.value.found.startswith("xdot[0] = nan where x[0] = -")


@adaptive
@pytest.mark.parametrize("first_step", [None, 0.5], ids=["own first step", "long first step"])
def test_a_root_left_by_a_trial_only_is_reached_by_smaller_steps(
    method: str, first_step: float | None
) -> None:
    outside: list[float] = []

    def rhs(t: float, x: Array) -> Array:
        if x[0] < 0.0:
            outside.append(t)
        return 1.0 - 10.0 * np.sqrt(x)

    segment = run(rhs, [1.0], 2.0, method, first_step=first_step)
    assert segment.x[-1] == pytest.approx([0.01], rel=1e-4)
    if first_step is not None:
        assert outside != []


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_a_first_jacobian_by_differences_that_leaves_the_domain(method: str) -> None:
    with pytest.raises(NonFiniteError, match=r"xdot\[0\] = nan where x\[0\] = 1\.0000") as caught:
        run(lambda t, x: 0.0 * np.sqrt(1.0 - x), [1.0], 1.0, method)
    assert_tells(caught.value, method, 0.0)


@pytest.mark.full
@adaptive
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_single_bad_value_at_any_evaluation(method: str, bad: float) -> None:
    """The run recovers or says what it met; it neither breaks nor returns something wrong."""

    def pendulum(t: float, x: Array) -> Array:
        return np.array([x[1], -9.81 * np.sin(x[0])])

    good = run(pendulum, [1.0, 0.0], 0.5, method)
    recovered = 0
    for position in range(1, good.nfev + 1):
        count = itertools.count(1)

        def rhs(t: float, x: Array, count: Any = count, position: int = position) -> Array:
            return np.array([0.0, bad]) if next(count) == position else pendulum(t, x)

        with contextlib.suppress(NonFiniteError):
            segment = run(rhs, [1.0, 0.0], 0.5, method)
            assert segment.x[-1] == pytest.approx(good.x[-1], abs=1e-3)
            recovered += 1
    assert recovered > 0.8 * good.nfev


@for_each("method", ["Rodas5P", "Radau"])
def test_a_given_jacobian_that_is_not_finite_at_the_start(method: str) -> None:
    with pytest.raises(NonFiniteError, match="expected a finite Jacobian"):
        run(lambda t, x: -x, [1.0], 1.0, method, jac=lambda t, x: np.array([[np.nan]]))


@pytest.mark.parametrize("method", ["Rodas5P", "Radau", "BDF"])
def test_a_given_jacobian_that_is_not_finite_later(method: str) -> None:
    def jac(t: float, x: Array) -> Array:
        return np.array([[0.0, 1.0], [-2.0 * x[0] * x[1] - 1.0, 1.0 - x[0] ** 2]]) / (t < 0.5)

    with np.errstate(divide="ignore", invalid="ignore"):
        segment = run(
            lambda t, x: np.array([x[1], (1.0 - x[0] ** 2) * x[1] - x[0]]),
            [2.0, 0.0],
            1.0,
            method,
            jac=jac,
        )
    exact = run(
        lambda t, x: np.array([x[1], (1.0 - x[0] ** 2) * x[1] - x[0]]), [2.0, 0.0], 1.0, "DOP853"
    )
    assert segment.x[-1] == pytest.approx(exact.x[-1], abs=1e-4)


@for_each("method", EXPLICIT_FIXED)
def test_a_state_that_overflows_although_the_derivative_is_finite(method: str) -> None:
    with pytest.raises(NonFiniteError, match=r"x\[0\] = inf.* or take a smaller step"):
        run(lambda t, x: np.full(1, 1.7e308), [1.7e308], 1.0, method)


@pytest.mark.parametrize("method", ["rk2", "rk4", "semi_explicit_euler", "DOP853"])
def test_an_interpolant_that_needs_a_slope_that_is_not_finite(method: str) -> None:
    def finite_for(evaluations: float) -> RightHandSide:
        count = itertools.count(1)
        return lambda t, x: np.full(1, 1.0 if next(count) <= evaluations else np.nan)

    needed = run(finite_for(math.inf), [0.0], STEP, method, first_step=STEP).nfev
    assert run(finite_for(needed), [0.0], STEP, method, first_step=STEP).x[-1] == pytest.approx(
        STEP
    )
    with pytest.raises(NonFiniteError, match=r"xdot\[0\] = nan"):
        run(finite_for(needed), [0.0], STEP, method, first_step=STEP, keep_dense=True)


# Blow-up and collapse ---------------------------------------------------------------------------


@every_method
def test_a_motion_that_is_infinite_in_finite_time(method: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(lambda t, x: x**2, [1.0], 2.0, method)
    assert isinstance(caught.value, StepSizeError | NonFiniteError | NoProgressError)
    assert caught.value.time == pytest.approx(1.0, abs=0.2)
    assert caught.value.remedy


@pytest.mark.full
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Rodas5P", "Radau", "BDF"])
def test_the_error_of_a_collapsing_step_tells_what_grows(method: str) -> None:
    with pytest.raises(StepSizeError) as caught:
        run(lambda t, x: np.array([0.0, x[1] ** 2]), [5.0, 1.0], 2.0, method)
    assert_tells(caught.value, method, 1.0)
    assert caught.value.found is not None
    assert "below the spacing of floating-point numbers; largest is x[1] = " in caught.value.found
    for named in ("method='Rodas5P'", "'ESDIRK4'"):
        assert (named in str(caught.value)) == (not is_implicit(method))


def test_implicit_euler_tells_that_newton_failed() -> None:
    with pytest.raises(
        StepSizeError, match=r"Newton.*a step of 0\.01 s.*Take a smaller step"
    ) as caught:
        run(lambda t, x: x**2, [1.0], 2.0, "implicit_euler")
    assert_tells(caught.value, "implicit_euler", 0.93)


@pytest.mark.parametrize("method", [name for name in METHOD_NAMES if is_fixed_step(name)])
def test_a_fixed_step_that_does_not_advance_time(method: str) -> None:
    options: dict[str, Any] = {"step": 1e-3}
    if method == "semi_explicit_euler":
        options["positions"] = [0]
    with pytest.raises(StepSizeError, match="spacing of floating-point numbers"):
        integrate(lambda t, x: -x, 1e16, [1.0], 1e16 + 10.0, method=method, options=options)


# Chattering -------------------------------------------------------------------------------------


@adaptive
def test_a_sliding_mode(method: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(lambda t, x: -1e3 * np.sign(x), [1.0], 1.0, method)
    assert isinstance(caught.value, NoProgressError | StepSizeError)
    assert_tells(caught.value, method, 1e-3)


@pytest.mark.full
@pytest.mark.parametrize(
    "method", thinned([name for name in ADAPTIVE if name != "Rodas5P"], fast=2)
)
def test_dry_friction_without_a_smooth_transition(method: str) -> None:
    with pytest.raises(NoProgressError) as caught:
        run(lambda t, x: np.array([x[1], -x[0] - 5.0 * np.sign(x[1])]), [1.0, 0.0], 10.0, method)
    assert_tells(caught.value, method, 0.0)
    found, remedies = (
        str(caught.value.found),
        ("continuous transition", "as JointFriction"),
    )
    assert "chattering: xdot[1] jumps" in found or "more to go" in found
    assert any(remedy in str(caught.value) for remedy in remedies)


def test_a_linearly_implicit_method_holds_a_body_that_dry_friction_holds() -> None:
    segment = run(
        lambda t, x: np.array([x[1], -x[0] - 5.0 * np.sign(x[1])]), [1.0, 0.0], 10.0, "Rodas5P"
    )
    assert segment.x[-1] == pytest.approx([1.0, 0.0], abs=1e-6)


def test_a_failure_of_lsoda_is_an_error_and_no_warning() -> None:
    class Failing(LSODA):
        """Gives up as LSODA does, which happens rarely and not in the same way everywhere."""

        def _step_impl(self) -> tuple[bool, str | None]:
            warnings.warn("lsoda: Repeated convergence failures", stacklevel=2)
            return False, "Unexpected istate in LSODA."

    with pytest.raises(StepSizeError, match="the corrector failed again and again") as caught:
        integrate(lambda t, x: -x, 0.0, [1.0], 1.0, method=Failing)
    assert_tells(caught.value, "Failing", 0.0)


@pytest.mark.parametrize("method", EXPLICIT_FIXED)
def test_fixed_steps_chatter_to_the_end(method: str) -> None:
    segment = run(lambda t, x: -1e3 * np.sign(x), [1.0], 1.0, method)
    assert segment.t[-1] == 1.0
    assert np.abs(segment.x).max() < 1e3 * STEP + 1.0


def test_implicit_euler_finds_no_state_for_a_sliding_mode() -> None:
    with pytest.raises(StepSizeError, match="Newton"):
        run(lambda t, x: -1e3 * np.sign(x), [1.0], 1.0, "implicit_euler")


def test_a_run_in_many_pieces_is_judged_as_a_whole() -> None:
    pace = Pace(0.0, 100.0)

    def go() -> None:
        for k in range(10_000):
            integrate(lambda t, x: -x, k * 1e-9, [1.0], (k + 1) * 1e-9, pace=pace)

    with pytest.raises(NoProgressError):
        go()
    assert 1_000 <= pace.steps <= 2_000


@pytest.mark.parametrize(
    "given",
    [{"method": "rk4", "options": {"step": 1e-9}}, {"method": "RK45", "max_step": 1e-9}],
    ids=["fixed step", "max_step"],
)
def test_short_steps_that_were_asked_for_are_no_lack_of_progress(given: dict[str, Any]) -> None:
    def on_step(step: TakenStep) -> Stop | None:
        return Stop(step.t, step.x) if step.t > 2.5e-6 else None

    assert integrate(lambda t, x: -x, 0.0, [1.0], 1.0, on_step=on_step, **given).steps > 2_400


def test_each_look_for_chattering_is_taken_at_one_step() -> None:
    pace = Pace(0.0, 1.0)
    pace.looks = 5
    given: dict[str, Any] = {"method": "rk4", "options": {"step": 0.1}, "pace": pace}
    run = integrate(lambda t, x: -x, 0.0, [1.0], 0.3, **given)
    assert (run.steps, pace.looks) == (3, 2)


def test_a_step_that_never_ends() -> None:
    evaluations: list[float] = []

    class Endless(RK45):
        def _step_impl(self) -> tuple[bool, str | None]:
            evaluations.clear()
            while True:
                self.fun(self.t, self.y)

    def rhs(t: float, x: Array) -> Array:
        evaluations.append(t)
        return -x

    with pytest.raises(NoProgressError, match="4200 evaluations of the right-hand side") as caught:
        integrate(rhs, 0.0, [1.0], 1.0, method=Endless)
    assert caught.value.time == 0.0
    assert len(evaluations) == 4200
    with pytest.raises(NoProgressError, match="250 evaluations"):
        integrate(
            lambda t, x: -x,
            0.0,
            [1.0],
            1.0,
            method=Endless,
            limits=Limits(evaluations_per_step=50),
        )


# Right-hand sides that are not what they should be ----------------------------------------------


@every_method
@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (np.zeros(3), r"shape \(3,\) of float64"),
        (np.zeros((2, 1)), r"shape \(2, 1\) of float64"),
        (np.float64(0.0), r"shape \(\) of float64"),
        (np.zeros(2, dtype=complex), r"shape \(2,\) of complex128"),
        (["a", "b"], r"shape \(2,\) of <U1"),
        ([[0.0], [0.0, 1.0]], r"shape \(\) of object"),
        (None, r"shape \(\) of object"),
    ],
    ids=["long", "matrix", "scalar", "complex", "text", "ragged", "nothing"],
)
def test_what_is_no_array_of_derivatives(method: str, returned: Any, found: str) -> None:
    with pytest.raises(
        EvaluationError, match=rf"at t = .* expected real numbers of shape \(2,\).*{found}"
    ):
        run(lambda t, x: returned, [1.0, 2.0], 1.0, method)


@every_method
def test_an_array_of_the_wrong_length_later_in_the_run(method: str) -> None:
    with pytest.raises(EvaluationError, match=r"shape \(1,\) of float64"):
        run(lambda t, x: -x if t < 0.5 else -x[:1], [1.0, 2.0], 1.0, method)


@pytest.mark.parametrize("method", [name for name in ADAPTIVE if name != "LSODA"])
def test_a_trial_that_the_equations_refuse_is_a_step_that_was_too_long(method: str) -> None:
    refused = []

    def rhs(t: float, x: Array) -> Array:
        return np.array([40.0 * (np.cos(t) - x[0])])

    def raises(t: float, x: Array) -> Array:
        if x[0] > 1.05:
            refused.append(t)
            raise EvaluationError("Cannot evaluate 'door'")
        return rhs(t, x)

    def gives_nan(t: float, x: Array) -> Array:
        return rhs(t, x) if x[0] <= 1.05 else np.array([np.nan])

    options: dict[str, Any] = {"rtol": 0.3, "atol": 0.3}
    found, expected = (run(each, [0.99], 2.0, method, **options) for each in (raises, gives_nan))
    assert refused or method not in ("RK23", "RK45", "DOP853")
    np.testing.assert_array_equal(found.t, expected.t)
    np.testing.assert_array_equal(found.x, expected.x)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_steps_that_creep_up_to_what_the_equations_refuse_end_with_its_reason(method: str) -> None:
    asked = []

    def rhs(t: float, x: Array) -> Array:
        asked.append(t)
        if x[0] > 2.96:
            raise EvaluationError("Cannot evaluate 'door'")
        return np.array([1e-3])  # so slow that the shortest steps do not change the state

    with pytest.raises(EvaluationError, match="'door'"):
        run(rhs, [2.9599], 2.0, method, max_step=1e-3)
    assert len(asked) < 2000


@every_method
@pytest.mark.parametrize("convert", [list, tuple, np.float32, lambda x: x.astype(int)])
def test_other_sequences_of_real_numbers_will_do(method: str, convert: Any) -> None:
    segment = run(lambda t, x: convert(np.array([1.0, 2.0])), [0.0, 0.0], 1.0, method)
    assert segment.x[-1] == pytest.approx([1.0, 2.0])


@every_method
@pytest.mark.parametrize(
    "trouble",
    [
        ZeroDivisionError("in the equations"),
        ValueError("array must not contain infs or NaNs"),
        np.linalg.LinAlgError("Singular matrix"),
        EvaluationError("Cannot evaluate 'door'"),
        KeyboardInterrupt(),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
def test_exceptions_of_the_equations_pass_unchanged(method: str, trouble: BaseException) -> None:
    def rhs(t: float, x: Array) -> Array:
        if t > 0.5:
            raise trouble
        return -x

    with pytest.raises(type(trouble)) as caught:
        run(rhs, [1.0], 1.0, method)
    assert caught.value is trouble
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("method", ["Rodas5P", "Radau", "BDF", "LSODA", "implicit_euler"])
def test_exceptions_of_the_jacobian_pass_unchanged(method: str) -> None:
    trouble = ValueError("in the Jacobian")

    def jac(t: float, x: Array) -> Array:
        raise trouble

    with pytest.raises(ValueError, match="in the Jacobian") as caught:
        run(lambda t, x: -1e4 * (x - np.cos(t)), [1.0], 10.0, method, jac=jac)
    assert caught.value is trouble


def test_a_solver_that_breaks_is_named() -> None:
    class Broken(RK45):
        def _step_impl(self) -> tuple[bool, str | None]:
            raise RuntimeError("out of luck")

    with pytest.raises(
        SimulationError, match="with Broken: found RuntimeError, out of luck"
    ) as caught:
        integrate(lambda t, x: -x, 0.0, [1.0], 1.0, method=Broken)
    assert caught.value.time == 0.0
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.full
@pytest.mark.timeout(110, method="signal")
def test_steps_that_rounding_shortens_are_not_blamed_on_a_singularity() -> None:
    plant = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    tip = plant.add_body("tip", fx.SpatialInertia.solid_box(0.02, size=(0.004, 0.012, 0.024)))
    joint = plant.add_joint(fx.PlanarJoint("joint", plant.world, tip))
    joint.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    steel = fx.Material.common("stainless steel 301")
    shape: Any = {"length": 0.1, "width": 0.02, "thickness": 5e-4, "segments": 2, "planar": True}
    leaf = fx.LeafSpring("leaf", plant.world, tip, material=steel, damping_time=1e-3, **shape)
    plant.add_force_element(leaf)
    system = plant.build()
    force = system.input_port("generalized_force")
    for load, rtol in ((1.0, 1e-12), (0.1, 1e-12)):
        context = system.create_default_context()
        force.fix(context, [0.0, load] + [0.0] * ((force.size or 0) - 2))
        rest = fx.equilibrium(system, context).context
        with pytest.raises(SimulationError, match=r"rounding errors.*Loosen.*'Rodas5P'") as caught:
            fx.simulate(system, 0.2, context=rest.clone(), method="BDF", rtol=rtol)
        assert isinstance(caught.value, NoProgressError | StepSizeError)
        assert "singularity" not in str(caught.value)
        assert "chattering" not in str(caught.value)
    remedies: list[Any] = [{"method": "Rodas5P", "rtol": 1e-10}, {"method": "BDF", "rtol": 1e-8}]
    for remedy in remedies:
        assert fx.simulate(system, 0.01, context=rest.clone(), **remedy).context.time == 0.01


@pytest.mark.parametrize("compiled", ["python", False])
@pytest.mark.parametrize("rate", [lambda t, x: 1e160 * x, lambda t, x: 1e308 * np.cos(x)])
def test_steps_of_radau_that_overflow_name_the_state(rate: Any, compiled: Any) -> None:
    with pytest.raises(StepSizeError, match=r"t = 0 s with Radau: .*numbers too large") as caught:
        fx.simulate(Flow(rate, [1.0]), 1.0, method="Radau", compiled=compiled)
    assert "infs or NaNs" not in str(caught.value)
    assert any("the fastest state at t = 0 s is flow.x" in note for note in caught.value.__notes__)

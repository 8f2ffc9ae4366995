"""`integrate`: the numbers of `solve_ivp`, seen step by step, stopped, and continued."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.integrate import RK45, solve_ivp

from flexure.diagrams.checks.errors import (
    EvaluationError,
    NonFiniteError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.integration.guard.integration import Segment, Stop, TakenStep, integrate
from flexure.solvers.integration.methods.methods import (
    METHOD_NAMES,
    is_fixed_step,
    is_implicit,
    resolve,
)
from tests.support.tiers import for_each

Array = NDArray[np.float64]

ADAPTIVE = [name for name in METHOD_NAMES if not is_fixed_step(name)]
FIXED = [name for name in METHOD_NAMES if is_fixed_step(name)]
plain: Any = solve_ivp  # its stub knows the options of SciPy's own methods only
every_method = pytest.mark.parametrize("method", METHOD_NAMES)


def settings(method: str) -> dict[str, Any]:
    """What a method needs beyond its name."""
    if not is_fixed_step(method):
        return {"method": method}
    options: dict[str, Any] = {"step": 0.01}
    if method == "semi_explicit_euler":
        options["positions"] = [0]
    return {"method": method, "options": options}


def pendulum(t: float, x: Array) -> Array:
    return np.array([x[1], -9.81 * np.sin(x[0]) - 0.3 * x[1] + np.cos(2.0 * t)])


def van_der_pol(t: float, x: Array) -> Array:
    return np.array([x[1], 100.0 * (1.0 - x[0] ** 2) * x[1] - x[0]])


class Counted:
    """A right-hand side that remembers when it was evaluated."""

    def __init__(self, rhs: Callable[[float, Array], Array]) -> None:
        self.times: list[float] = []
        self._rhs = rhs

    def __call__(self, t: float, x: Array) -> Array:
        self.times.append(float(t))
        return self._rhs(t, x)


# The numbers are SciPy's ------------------------------------------------------------------------


@for_each("method", ADAPTIVE)
@for_each(
    "given",
    [
        {},
        {"rtol": 1e-9, "atol": 1e-12},
        {"rtol": 1e-4, "atol": np.array([1e-5, 1e-7])},
        {"max_step": 0.01},
        {"first_step": 0.2},
    ],
)
def test_times_and_states_are_those_of_solve_ivp(method: str, given: dict[str, Any]) -> None:
    given = {"rtol": 1e-6, "atol": 1e-9} | given
    expected = plain(pendulum, (0.3, 3.0), [1.0, 0.2], resolve(method), **given)
    segment = integrate(pendulum, 0.3, [1.0, 0.2], 3.0, method=method, **given)
    assert np.array_equal(segment.t, expected.t)
    assert np.array_equal(segment.x, expected.y.T)
    assert (segment.njev, segment.nlu) == (expected.njev, expected.nlu)
    assert segment.steps == len(expected.t) - 1


@pytest.mark.parametrize("method", ["Rodas5P", "Radau", "BDF", "LSODA"])
def test_stiff_runs_are_those_of_solve_ivp_too(method: str) -> None:
    given: dict[str, Any] = {"method": resolve(method), "rtol": 1e-5, "atol": 1e-8}
    expected = plain(van_der_pol, (0.0, 100.0), [2.0, 0.0], **given)
    segment = integrate(van_der_pol, 0, [2.0, 0.0], 100.0, **given)
    assert np.array_equal(segment.t, expected.t)
    assert np.array_equal(segment.x, expected.y.T)


@pytest.mark.parametrize("method", FIXED)
def test_fixed_steps_are_those_of_solve_ivp_too(method: str) -> None:
    given = settings(method)
    expected = plain(pendulum, (0.0, 1.005), [1.0, 0.2], method=resolve(method), **given["options"])
    segment = integrate(pendulum, 0.0, [1.0, 0.2], 1.005, **given)
    assert np.array_equal(segment.t, expected.t)
    assert np.array_equal(segment.x, expected.y.T)
    assert segment.rejected == 0


def test_a_foreign_solver_class_runs() -> None:
    class Careful(RK45):
        """Takes small steps."""

        def __init__(self, *arguments: Any, caution: float = 1.0, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.max_step = 0.1 / caution

    steps = [
        integrate(
            pendulum, 0.0, [1.0, 0.2], 3.0, method=Careful, options={"caution": caution}
        ).steps
        for caution in (1.0, 10.0)
    ]
    assert steps[1] > 5 * steps[0]


def test_tolerances_per_state_work_with_every_adaptive_method() -> None:
    for method in ADAPTIVE:
        segment = integrate(
            pendulum, 0.0, [1.0, 0.2], 1.0, method=method, rtol=[1e-7, 1e-5], atol=[1e-9, 1e-8]
        )
        assert segment.x[-1] == pytest.approx(
            integrate(pendulum, 0.0, [1.0, 0.2], 1.0, rtol=1e-10, atol=1e-12).x[-1], abs=1e-4
        )


@every_method
def test_every_evaluation_is_counted(method: str) -> None:
    rhs = Counted(pendulum)
    segment = integrate(rhs, 0.0, [1.0, 0.2], 2.0, **settings(method), keep_dense=True)
    assert segment.nfev == len(rhs.times)


@pytest.mark.parametrize(("method", "stages"), [("RK23", 3), ("RK45", 6), ("DOP853", 12)])
def test_rejected_steps_are_counted(method: str, stages: int) -> None:
    segment = integrate(van_der_pol, 0.0, [2.0, 0.0], 2.0, method=method)
    assert segment.rejected is not None
    assert segment.rejected > 0
    assert segment.nfev == 2 + stages * (segment.steps + segment.rejected)


def test_rejected_steps_of_a_rosenbrock_method_are_counted() -> None:
    segment = integrate(van_der_pol, 0.0, [2.0, 0.0], 200.0, method="Rodas5P", jac=jacobian)
    assert segment.rejected is not None
    assert segment.rejected > 0
    assert segment.njev == segment.steps
    assert segment.nlu == segment.steps + segment.rejected
    # One evaluation finds that nothing depends on time, seven are for stages, one is at the end.
    assert segment.nfev == 2 + 9 * segment.steps + 8 * segment.rejected


def test_rejected_steps_of_other_methods_are_not_known() -> None:
    for method in ["Radau", "BDF", "LSODA"]:
        assert integrate(pendulum, 0.0, [1.0, 0.2], 1.0, method=method).rejected is None


# Seeing the steps -------------------------------------------------------------------------------


@every_method
def test_the_callback_sees_every_step_in_order(method: str) -> None:
    seen: list[tuple[float, float, Array, Array]] = []
    segment = integrate(
        pendulum,
        0.0,
        [1.0, 0.2],
        1.0,
        on_step=lambda step: seen.append((step.t_old, step.t, step.x_old, step.x)),
        **settings(method),
    )
    assert [entry[0] for entry in seen] == segment.t[:-1].tolist()
    assert [entry[1] for entry in seen] == segment.t[1:].tolist()
    assert np.array_equal([entry[2] for entry in seen], segment.x[:-1])
    assert np.array_equal([entry[3] for entry in seen], segment.x[1:])


@every_method
def test_the_interpolant_of_a_step_is_made_once_and_joins_its_ends(method: str) -> None:
    def look(step: TakenStep) -> None:
        interpolant = step.dense()
        assert step.dense() is interpolant
        assert interpolant(step.t) == pytest.approx(step.x, rel=1e-9, abs=1e-12)
        assert interpolant(np.array([step.t_old, step.t])).shape == (2, 2)
        if method not in ("BDF", "LSODA"):  # theirs meet the old state only within the tolerance
            assert interpolant(step.t_old) == pytest.approx(step.x_old, rel=1e-9, abs=1e-12)

    assert integrate(pendulum, 0.0, [1.0, 0.2], 0.5, on_step=look, **settings(method)).steps > 2


def test_an_interpolant_asked_for_too_late_is_refused() -> None:
    steps: list[TakenStep] = []

    def on_step(step: TakenStep) -> None:
        steps.append(step)
        if len(steps) % 2:
            step.dense()

    integrate(pendulum, 0.0, [1.0, 0.2], 1.0, on_step=on_step)
    assert steps[0].dense()(steps[0].t) == pytest.approx(steps[0].x)
    with pytest.raises(EvaluationError, match=r"keep what it returns"):
        steps[1].dense()


@every_method
def test_kept_interpolants_cover_the_run(method: str) -> None:
    segment = integrate(
        pendulum, 0.0, [1.0, 0.2], 1.0, keep_dense=True, rtol=1e-8, atol=1e-10, **settings(method)
    )
    exact = plain(
        pendulum, (0.0, 1.0), [1.0, 0.2], "DOP853", rtol=1e-12, atol=1e-12, dense_output=True
    ).sol
    assert len(segment.interpolants) == segment.steps
    accuracy = 0.1 if is_fixed_step(method) else 1e-5
    for interpolant, left, right in zip(
        segment.interpolants, segment.t[:-1], segment.t[1:], strict=True
    ):
        middle = 0.5 * (left + right)
        assert interpolant(middle) == pytest.approx(exact(middle), abs=accuracy)


def test_the_initial_state_is_copied() -> None:
    x0 = np.array([1.0, 0.2])
    segment = integrate(pendulum, 0.0, x0, 1.0, method="LSODA")
    assert np.array_equal(x0, [1.0, 0.2])
    segment.x[:] = 0.0
    assert np.array_equal(x0, [1.0, 0.2])


def test_an_interval_without_length_evaluates_nothing() -> None:
    rhs = Counted(pendulum)
    segment = integrate(rhs, 2.0, [1.0, 0.2], 2.0, first_step=0.1)
    assert segment.t.tolist() == [2.0]
    assert segment.x.tolist() == [[1.0, 0.2]]
    assert (segment.steps, segment.nfev, segment.next_step) == (0, 0, 0.1)
    assert rhs.times == []


# Stopping ---------------------------------------------------------------------------------------


def stop_at(time: float) -> Callable[[TakenStep], Stop | None]:
    def on_step(step: TakenStep) -> Stop | None:
        return Stop(time, step.dense()(time)) if step.t >= time else None

    return on_step


@every_method
def test_a_stop_ends_the_run_inside_of_a_step(method: str) -> None:
    whole = integrate(pendulum, 0.0, [1.0, 0.2], 1.0, **settings(method), keep_dense=True)
    time = 0.5 * (whole.t[4] + whole.t[5])
    segment = integrate(
        pendulum, 0.0, [1.0, 0.2], 1.0, **settings(method), on_step=stop_at(time), keep_dense=True
    )
    assert segment.t.tolist() == [*whole.t[:5], time]
    assert np.array_equal(segment.x[:-1], whole.x[:5])
    assert np.array_equal(segment.x[-1], whole.interpolants[4](time))
    assert segment.stop is not None
    assert segment.stop.t == time
    assert len(segment.interpolants) == segment.steps == 5
    assert whole.stop is None


def test_a_stop_may_change_the_state_and_end_a_whole_step() -> None:
    segment = integrate(
        pendulum, 0.0, [1.0, 0.2], 1.0, on_step=lambda step: Stop(step.t, np.array([7.0, 8.0]))
    )
    assert segment.steps == 1
    assert segment.x.tolist() == [[1.0, 0.2], [7.0, 8.0]]


@pytest.mark.parametrize(
    ("shift", "size"), [(1e-9, 2), (-1.0, 2), (0.0, 3)], ids=["late", "early", "shape"]
)
def test_a_stop_outside_of_the_step_is_refused(shift: float, size: int) -> None:
    with pytest.raises(ValueRefusedError, match="inside of a step"):
        integrate(
            pendulum,
            0.0,
            [1.0, 0.2],
            1.0,
            on_step=lambda step: Stop(step.t + shift, np.zeros(size)),
        )


@every_method
def test_exceptions_of_the_callback_pass_unchanged(method: str) -> None:
    trouble = ValueError("array must not contain infs or NaNs")

    def on_step(step: TakenStep) -> None:
        raise trouble

    with pytest.raises(ValueError, match="infs or NaNs") as caught:
        integrate(pendulum, 0.0, [1.0, 0.2], 1.0, **settings(method), on_step=on_step)
    assert caught.value is trouble


@every_method
def test_an_interrupted_run_leaves_its_last_step_with_the_callback(method: str) -> None:
    last: list[TakenStep] = []

    def rhs(t: float, x: Array) -> Array:
        if t > 0.5:
            raise KeyboardInterrupt
        return pendulum(t, x)

    with pytest.raises(KeyboardInterrupt):
        integrate(rhs, 0.0, [1.0, 0.2], 1.0, **settings(method), on_step=last.append)
    assert 0.2 < last[-1].t < 0.52
    exact = integrate(pendulum, 0.0, [1.0, 0.2], last[-1].t, method="DOP853").x[-1]
    assert last[-1].x == pytest.approx(exact, abs=0.1)


# Going on ---------------------------------------------------------------------------------------


def chain(method: str, segments: int, *, carry: bool) -> tuple[int, Array]:
    """Run 2 s in pieces; return the evaluations and the final state."""
    x, evaluations, first_step = np.array([1.0, 0.2]), 0, None
    for k in range(segments):
        segment = integrate(
            pendulum,
            2.0 * k / segments,
            x,
            2.0 * (k + 1) / segments,
            method=method,
            rtol=1e-5,
            atol=1e-8,
            first_step=first_step if carry else None,
        )
        x, evaluations = segment.x[-1], evaluations + segment.nfev
        first_step = segment.next_step
    return evaluations, x


@pytest.mark.parametrize(
    ("method", "per_segment"), [("RK23", 4), ("RK45", 7), ("DOP853", 13), ("Rodas5P", 13)]
)
def test_a_carried_step_size_saves_the_search_for_one(method: str, per_segment: int) -> None:
    exact = integrate(pendulum, 0.0, [1.0, 0.2], 2.0, rtol=1e-11, atol=1e-13).x[-1]
    evaluations, x = chain(method, 500, carry=True)
    searching, _ = chain(method, 500, carry=False)
    assert evaluations < 1.02 * 500 * per_segment
    assert searching > evaluations + 450
    assert x == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_the_next_step_is_not_cut_by_the_end_of_the_run(method: str) -> None:
    natural = integrate(pendulum, 0.0, [1.0, 0.2], 2.0, method=method).next_step
    assert natural is not None
    short = integrate(pendulum, 2.0, [1.0, 0.2], 2.0 + 1e-6, method=method, first_step=natural)
    assert short.steps == 1
    assert short.next_step == natural


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_the_next_step_is_not_cut_by_a_stop(method: str) -> None:
    sizes: list[float] = []

    def on_step(step: TakenStep) -> Stop | None:
        sizes.append(step.t - step.t_old)
        if len(sizes) < 10:
            return None
        time = step.t_old + 1e-6
        return Stop(time, step.dense()(time))

    segment = integrate(pendulum, 0.0, [1.0, 0.2], 5.0, method=method, on_step=on_step)
    assert segment.next_step is not None
    assert 0.3 * sizes[-1] < segment.next_step < 3.0 * sizes[-1]


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_a_rejected_step_shrinks_the_next_one(method: str) -> None:
    segment = integrate(
        van_der_pol,
        0.0,
        [2.0, 0.0],
        0.05,
        method=method,
        first_step=0.1,
        on_step=lambda step: Stop(step.t, step.x),
    )
    assert segment.rejected is not None
    assert segment.rejected > 0
    assert segment.next_step is not None
    assert segment.next_step <= segment.t[-1] < 0.05


@pytest.mark.parametrize("method", ["BDF", "LSODA", *FIXED])
def test_other_methods_begin_anew(method: str) -> None:
    segment = integrate(pendulum, 0.0, [1.0, 0.2], 0.5, **settings(method))
    assert segment.next_step is None


def test_a_first_step_beyond_the_end_is_cut() -> None:
    assert integrate(pendulum, 0.0, [1.0, 0.2], 1e-3, first_step=5.0).steps == 1


# What the equations see -------------------------------------------------------------------------


@every_method
def test_equations_that_jump_at_the_end_are_seen_before_the_jump(method: str) -> None:
    before = math.nextafter(1.0, 0.0)
    rhs = Counted(lambda t, x: np.array([x[1], -x[0]]) if t < 1.0 else np.full(2, np.nan))
    segment = integrate(
        rhs, 0.0, [1.0, 0.0], 1.0, **settings(method), t_clip=before, keep_dense=True
    )
    assert segment.t[-1] == 1.0
    assert max(rhs.times) <= before
    assert segment.x[-1] == pytest.approx([np.cos(1.0), -np.sin(1.0)], abs=0.02)


def test_a_jacobian_is_clipped_to_the_same_time() -> None:
    times: list[float] = []

    def jac(t: float, x: Array) -> Array:
        times.append(t)
        return np.array([[-1e3]])

    integrate(lambda t, x: -1e3 * x, 0.0, [1.0], 1.0, method="BDF", jac=jac, t_clip=0.0)
    integrate(lambda t, x: -1e3 * x, 0.5, [1.0], 1.0, method="BDF", jac=jac, t_clip=0.25)
    assert set(times) == {0.0, 0.25}


def jacobian(t: float, x: Array) -> Array:
    return np.array([[0.0, 1.0], [-200.0 * x[0] * x[1] - 1.0, 100.0 * (1.0 - x[0] ** 2)]])


@pytest.mark.parametrize("method", ["Rodas5P", "Radau", "BDF", "LSODA", "implicit_euler"])
@pytest.mark.parametrize("form", [jacobian, lambda t, x: sparse.csc_array(jacobian(t, x))])
def test_a_given_jacobian_replaces_differences(method: str, form: Any) -> None:
    by_differences = integrate(van_der_pol, 0.0, [2.0, 0.0], 5.0, **settings(method))
    given = integrate(van_der_pol, 0.0, [2.0, 0.0], 5.0, **settings(method), jac=form)
    assert given.x[-1] == pytest.approx(by_differences.x[-1], rel=1e-4)
    assert given.nfev < by_differences.nfev


@every_method
def test_methods_without_equations_to_solve_leave_the_jacobian_alone(method: str) -> None:
    called: list[float] = []

    def jac(t: float, x: Array) -> Array:
        called.append(t)
        return np.array([[0.0, 1.0], [-9.81 * np.cos(x[0]), -0.3]])

    integrate(pendulum, 0.0, [1.0, 0.2], 0.1, **settings(method), jac=jac)
    if not is_implicit(method):
        assert called == []
    elif method != "LSODA":  # which may not need it
        assert called != []


def test_no_floating_point_warning_escapes_from_trial_points() -> None:
    def rhs(t: float, x: Array) -> Array:
        return 1.0 - 10.0 * np.sqrt(x) + 0.0 * np.exp(1e3 * np.minimum(x, 0.0)) / (1.0 + x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = np.geterr()
        integrate(rhs, 0.0, [1.0], 2.0, first_step=0.5)
        assert np.geterr() == before


def test_the_caller_may_name_the_culprit() -> None:
    seen: list[tuple[float, Array, Array | None]] = []

    def blame(t: float, x: Array, xdot: Array | None) -> Exception:
        seen.append((t, x, xdot))
        return NonFiniteError("Cannot integrate 'door'")

    with pytest.raises(NonFiniteError, match="Cannot integrate 'door'") as caught:
        integrate(lambda t, x: np.array([x[1], np.log(0.5 - t)]), 0.0, [1.0, 0.0], 1.0, blame=blame)
    (t, x, xdot) = seen[0]
    assert caught.value.time == t == pytest.approx(0.5, abs=1e-9)
    assert np.isfinite(x).all()
    assert xdot is not None
    assert np.isfinite(xdot).tolist() == [True, False]


def test_the_own_text_is_used_if_the_caller_does_not_know() -> None:
    with pytest.raises(NonFiniteError, match=r"xdot\[0\] = nan"):
        integrate(lambda t, x: x * np.nan, 0.0, [1.0], 1.0, blame=lambda t, x, xdot: None)


# Refusals ---------------------------------------------------------------------------------------


@for_each(
    ("given", "text"),
    [
        ({"rtol": 1e-15}, "this rtol: expected a number of at least 2.22e-14"),
        ({"rtol": -1e-3}, "this rtol"),
        ({"rtol": [1e-3, 1e-3, 1e-3]}, "Cannot integrate 2 states with this rtol"),
        ({"atol": 0.0}, "this atol"),
        ({"atol": np.array([1e-6, -1e-6])}, "this atol"),
        ({"atol": np.nan}, "this atol"),
        ({"atol": "small"}, "this atol"),
        ({"atol": np.inf}, "this atol"),
        ({"max_step": 0.0}, "Cannot use max_step"),
        ({"max_step": np.nan}, "Cannot use max_step"),
        ({"first_step": -1.0}, "Cannot use first_step"),
        ({"t0": 2.0}, "Cannot integrate over this interval"),
        ({"t_bound": np.inf}, "Cannot integrate over this interval"),
        ({"t0": np.nan}, "Cannot integrate over this interval"),
        ({"x0": []}, "one or more finite numbers"),
        ({"x0": 1.0}, "one or more finite numbers"),
        ({"x0": [1.0, np.nan]}, "one or more finite numbers"),
        ({"x0": ["a", "b"]}, "one or more finite numbers"),
        ({"x0": [1.0, 1j]}, "one or more finite numbers"),
        ({"x0": [[1.0], [1.0, 2.0]]}, "one or more finite numbers"),
        ({"x0": [[1.0, 2.0]]}, "one or more finite numbers"),
        ({"method": "rk4"}, "positive step in seconds"),
        ({"method": "rk4", "options": {"step": 0.1}, "max_step": 0.05}, "at most max_step=0.05"),
        ({"method": "Radau", "options": {"jac_sparsity": "no matrix"}}, "Cannot set up"),
        ({"method": int}, "a subclass of scipy.integrate.OdeSolver"),
    ],
)
def test_senseless_arguments_are_refused_before_any_step(given: dict[str, Any], text: str) -> None:
    steps: list[TakenStep] = []
    arguments: dict[str, Any] = {
        "t0": 0.0,
        "x0": [1.0, 0.2],
        "t_bound": 1.0,
        "on_step": steps.append,
    } | given
    with pytest.raises(ValueRefusedError, match=text):
        integrate(pendulum, **arguments)
    assert steps == []


@for_each(
    ("given", "text"),
    [
        ({"method": "RK54"}, r"Did you mean 'RK45'\?"),
        ({"method": "rk4", "options": {"setp": 0.1}}, r"Did you mean 'step'\?"),
        ({"method": "RK45", "options": {"rtol": 1e-3}}, "option 'rtol' to RK45"),
        ({"method": "rk4", "options": {"step": 0.1, "positions": [0]}}, "option 'positions'"),
    ],
)
def test_unknown_names_are_refused_with_a_guess(given: dict[str, Any], text: str) -> None:
    with pytest.raises(UnknownNameError, match=text):
        integrate(pendulum, 0.0, [1.0, 0.2], 1.0, **given)


def test_a_segment_holds_one_row_per_time() -> None:
    segment = integrate(pendulum, 0.0, [1.0, 0.2], 1.0)
    assert isinstance(segment, Segment)
    assert segment.t.shape == (segment.steps + 1,)
    assert segment.x.shape == (segment.steps + 1, 2)
    assert np.all(np.diff(segment.t) > 0.0)

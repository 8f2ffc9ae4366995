"""Blocks that declare where their state belongs: every method keeps it there, in every way to run.

The block here is a free oscillator that declares its energy. Its exact motion is the other route.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import DenseOutput, OdeSolver

import flexure as fx
from flexure.errors import DeclarationError, SimulationError
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step
from flexure.solvers.native.programs.method_programs import METHODS
from tests.support.native.javascript_runs import simulate
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier, for_each, thinned

ENERGY = 0.5


class Orbit(fx.LeafSystem):
    """q̈ = -q, whose energy stays at 0.5."""

    def __init__(self, name: str = "orbit", tolerance: float = 1e-9) -> None:
        super().__init__(name)
        self.tolerance = self.declare_numeric_parameter("tolerance", tolerance, lower=0.0)
        self.state = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.output = self.declare_vector_output("y", 2, self.state, prerequisites=[self.state])
        self.declare_projection(self.calc_deviation, self.calc_projected)

    def calc_time_derivatives(self, context: Any) -> list[Any]:
        q, v = self.state(context)
        return [v, -q]

    def calc_deviation(self, context: Any) -> Any:
        q, v = self.state(context)
        return (0.5 * (q * q + v * v) - ENERGY) / self.tolerance(context)

    def calc_projected(self, context: Any) -> Any:
        """Return the state after a step of Newton's method along the gradient of the energy."""
        x = self.state(context)
        square = x[0] * x[0] + x[1] * x[1]
        return x * (1.0 - (0.5 * square - ENERGY) / square)


FIXED = [name for name in METHOD_NAMES if is_fixed_step(name)]
ADAPTIVE = [name for name in METHOD_NAMES if name not in FIXED]


def energy_error(result: fx.results.SimulationResult) -> Any:
    """Return the errors of the energy at the ends of all steps."""
    states = result["x"]
    return np.abs(0.5 * np.sum(states * states, axis=1) - ENERGY)


KNOWING = [("BDF", "python"), ("LSODA", "python")]  # which know differences of earlier states


@for_each(
    ("method", "compiled"),
    by_tier(
        fast=KNOWING,
        full=[*((name, "python") for name in METHOD_NAMES), *((name, True) for name in METHODS)],
    ),
)
def test_every_method_ends_its_steps_where_the_state_belongs(method: str, compiled: Any) -> None:
    options: dict[str, Any] = {"step": 0.01} if method in FIXED else {"rtol": 1e-4}
    result = fx.simulate(Orbit(), 10.0, method=method, compiled=compiled, **options)
    assert np.max(energy_error(result)) <= 1e-9
    plain = fx.simulate(Orbit(tolerance=1.0), 10.0, method=method, compiled=compiled, **options)
    assert method == "rk4" or np.max(energy_error(plain)) > 1e-9
    # As many steps, or nearly so: nothing begins anew.
    assert result.statistics.steps <= 1.3 * plain.statistics.steps
    exact = np.array([np.cos(10.0), -np.sin(10.0)])
    assert result.context.store.x == pytest.approx(exact, abs=0.06 if method in FIXED else 0.02)


class Midpoint(OdeSolver):
    """A method of somebody else's, which keeps the slope at the end of a step for the next one."""

    def __init__(self, fun: Any, t0: float, y0: Any, t_bound: float, **_: Any) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized=False)
        self._known = self.fun(t0, self.y)
        self._before = self.y

    def _step_impl(self) -> tuple[bool, None]:
        h = min(0.01, self.t_bound - self.t)
        self._before = self.y
        self.y = self.y + h * self.fun(self.t + 0.5 * h, self.y + 0.5 * h * self._known)
        self.t += h
        self._known = self.fun(self.t, self.y)
        return True, None

    def _dense_output_impl(self) -> Any:
        return _Line(self.t_old, self.t, self._before, self.y)


class _Line(DenseOutput):
    def __init__(self, t_old: float, t: float, x_old: Any, x: Any) -> None:
        super().__init__(t_old, t)
        self._ends = x_old, x

    def _call_impl(self, t: Any) -> Any:
        x_old, x = self._ends
        return x_old + (x - x_old) * (t - self.t_old) / (self.t - self.t_old)


def test_a_method_that_cannot_go_on_from_another_state_begins_anew() -> None:
    result = fx.simulate(Orbit(), 2.0, method=Midpoint)
    assert np.max(energy_error(result)) <= 1e-9
    assert result.statistics.restarts > 100
    assert result.context.store.x == pytest.approx([np.cos(2.0), -np.sin(2.0)], abs=1e-4)


@needs_llvmlite
@pytest.mark.parametrize("method", METHODS)
def test_native_loops_take_the_steps_of_python(method: str) -> None:
    times = np.linspace(0.0, 4.0, 33)
    options: dict[str, Any] = {"method": method, "rtol": 1e-4}
    native, python = (
        fx.simulate(Orbit(), 4.0, compiled=compiled, **options) for compiled in ("native", "python")
    )
    assert native.statistics.steps == python.statistics.steps
    assert native.statistics.native_steps == native.statistics.steps
    assert native.sample("x", times) == pytest.approx(python.sample("x", times), abs=1e-9)


@needs_llvmlite
def test_many_alike_blocks_that_share_code_stay_where_they_belong() -> None:
    builder, count = fx.DiagramBuilder("orbits"), 200
    tolerances = np.geomspace(1e-9, 1e-4, count)
    builder.add_all(*(Orbit(f"orbit{k}", each) for k, each in enumerate(tolerances)))
    system = builder.build()
    simulator = fx.Simulator(system, method="RK45", rtol=1e-4, atol=1e-6, compiled="native")
    simulator.advance_to(3.0)
    program = fx.compiled_equations(system).program
    assert program is not None
    assert program.plan.is_shared
    ends = np.array([simulator.context.get(f"orbit{k}.x") for k in range(count)])
    np.testing.assert_allclose(ends, [[np.cos(3.0), -np.sin(3.0)]] * count, atol=1e-3)
    errors = np.abs(0.5 * np.sum(np.square(ends), axis=1) - ENERGY)
    assert np.all(errors <= tolerances)


@needs_llvmlite
@pytest.mark.parametrize("method", thinned(["RK45", "Rodas5P"], fast=1))
def test_lanes_take_the_steps_of_single_runs(method: str) -> None:
    times = np.linspace(0.0, 4.0, 33)
    options: dict[str, Any] = {"method": method, "rtol": 1e-4}
    lanes = fx.sweep(Orbit(), {"tolerance": [1e-9, 1.0]}, 4.0, signals="x", times=times, **options)
    single = fx.simulate(Orbit(), 4.0, **options)
    assert "native code in" in lanes.how
    assert lanes.steps[0] == single.statistics.steps
    assert lanes["x"][0] == pytest.approx(single.sample("x", times), abs=1e-9)


@pytest.mark.parametrize("compiled", ["python", True])
def test_the_record_is_continuous_and_nothing_of_it_is_lost(compiled: Any) -> None:
    """States inside of steps lead to the new ends; without history the end is the same."""
    result = fx.simulate(Orbit(), 5.0, rtol=1e-4, compiled=compiled)
    ends = result.time[1:-1]
    assert len(ends) == result.statistics.steps - 1  # and no value twice
    inside = result.sample("x", np.column_stack([ends - 1e-9, ends + 1e-9]).ravel())
    assert inside[::2] == pytest.approx(inside[1::2], abs=1e-8)
    simulator = fx.Simulator(Orbit(), rtol=1e-4, compiled=compiled)
    simulator.advance_to(5.0)
    assert np.array_equal(simulator.context.store.x, result.context.store.x)
    again = fx.simulate(Orbit(), 5.0, rtol=1e-4, compiled=compiled)
    assert np.array_equal(again.context.store.x, result.context.store.x)


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("rk2", 2), ("semi_explicit_euler", 1)])
def test_a_projection_keeps_the_order_of_a_method(method: str, order: int) -> None:
    """By steps that are halved; the energy is that of the exact motion, so the phase tells."""
    exact = np.array([np.cos(3.0), -np.sin(3.0)])
    errors = [
        np.linalg.norm(
            fx.simulate(Orbit(tolerance=1e-13), 3.0, method=method, step=step).context.store.x
            - exact
        )
        for step in (0.1, 0.05)
    ]
    assert np.log2(errors[0] / errors[1]) > order - 0.3


class Kicked(Orbit):
    """An orbit whose velocity is doubled at a time, and which comes back to its energy at once."""

    def __init__(self) -> None:
        super().__init__("kicked")
        self.declare_unrestricted_update(self.kick, fx.diagrams.Periodic(100.0, 1.0))

    def kick(self, context: Any) -> dict[Any, Any]:
        q, v = self.state(context)
        return {self.state: [q, 2.0 * v]}


@pytest.mark.parametrize("compiled", ["python", True])
def test_what_an_event_leaves_is_projected_before_the_motion_goes_on(compiled: Any) -> None:
    result = fx.simulate(Kicked(), 2.0, rtol=1e-8, compiled=compiled)
    before, after = result["x"][result.time == 1.0]
    assert np.abs(0.5 * np.sum(after**2) - ENERGY) <= 1e-9
    kicked = np.array([before[0], 2.0 * before[1]])
    assert after == pytest.approx(kicked / np.linalg.norm(kicked), abs=1e-6)


class Crossing(Orbit):
    """An orbit that is turned back where it crosses zero."""

    def __init__(self) -> None:
        super().__init__("crossing", tolerance=1e-12)
        self.declare_unrestricted_update(self.turn, fx.diagrams.Witness(self.position, "falling"))

    def position(self, context: Any) -> Any:
        return self.state(context)[0]

    def turn(self, context: Any) -> dict[Any, Any]:
        q, v = self.state(context)
        return {self.state: [q, -v]}


@pytest.mark.parametrize("compiled", ["python", True])
def test_events_inside_of_steps_are_found_as_ever(compiled: Any) -> None:
    result = fx.simulate(Crossing(), 9.0, rtol=1e-5, compiled=compiled)
    ends = result.time[:-1][result.time[1:] == result.time[:-1]]
    expected = np.pi * (np.arange(len(ends)) + 0.5)
    assert len(ends) == 3
    assert ends == pytest.approx(expected, abs=1e-3)


class Nowhere(fx.LeafSystem):
    """A state that never is where it belongs, by a parameter."""

    def __init__(self) -> None:
        super().__init__("nowhere")
        self.away = self.declare_numeric_parameter("away", 5.0, allow_infinite=True)
        self.state = self.declare_continuous_state(z=1)
        self.declare_projection(self.calc_away, self.state, describe=self.describe)

    def calc_time_derivatives(self, context: Any) -> Any:
        return 1.0

    def calc_away(self, context: Any) -> Any:
        """Return NaN for what is infinite."""
        away = self.away(context)
        return np.where(self.state(context)[0] > 0.5, away - 0.0 * away, 0.0)

    def describe(self, context: Any) -> str:
        return f"'nowhere' off by {self.away(context):.3g}"


@pytest.mark.parametrize("compiled", ["python", True])
def test_what_projections_leave_is_said_once_and_the_run_goes_on(compiled: Any) -> None:
    with pytest.warns(UserWarning, match="'nowhere' off by 5") as caught:
        result = fx.simulate(Nowhere(), 1.0, max_step=0.05, compiled=compiled)
    assert len(caught) == 1
    assert result.context.store.x == pytest.approx([1.0])


@pytest.mark.parametrize("compiled", ["python", True])
@pytest.mark.parametrize(("away", "found"), [(2e3, "2e\\+03"), (-np.inf, "-inf")])
def test_a_state_far_away_ends_the_run_by_name(compiled: Any, away: float, found: str) -> None:
    system = Nowhere()
    context = system.create_default_context()
    system.away.set(context, away)
    with pytest.raises(SimulationError, match=f"'nowhere' off by {found}") as refusal:
        fx.simulate(system, 1.0, context=context, max_step=0.05, compiled=compiled)
    assert refusal.value.time == pytest.approx(0.5, abs=0.06)


@needs_llvmlite
def test_lanes_end_runs_that_go_astray_and_warn_of_the_others() -> None:
    with pytest.warns(UserWarning, match="deviates by 5 times its tolerance"):
        runs = fx.sweep(Nowhere(), {"away": [0.0, 5.0, 2000.0]}, 1.0, max_step=0.05)
    assert list(runs.outcomes) == ["completed", "completed", "failed"]
    assert "projections do not bring the state within" in str(runs.failure_table())


def test_what_cannot_be_declared_is_refused() -> None:
    class Stateless(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("stateless")
            self.declare_projection(lambda context: 0.0, lambda context: 0.0)

    with pytest.raises(DeclarationError, match="a continuous state before it"):
        Stateless()
    orbit = Orbit()
    with pytest.raises(DeclarationError, match="a second projection"):
        orbit.declare_projection(orbit.calc_deviation, orbit.calc_projected)
    with pytest.raises(DeclarationError, match="1 or more states z before it"):
        orbit.declare_tally(orbit.calc_deviation)
    for bad in ({"size": 3}, {"calc": 3.0}):
        with pytest.raises(DeclarationError, match="the tally of 'counting'"):
            Counting(**bad)
    for bad in ({"size": 0}, {"describe": 3}):
        with pytest.raises(DeclarationError):
            declaring(**bad)
    with pytest.raises(DeclarationError, match="functions of a context"):
        declaring(projected=1.0)


class Counting(fx.LeafSystem):
    """Adds up what projections change in the energy of an orbit."""

    def __init__(self, calc: Any = None, size: int = 1) -> None:
        super().__init__("counting")
        self.u = self.declare_vector_input("u", 2)
        self.sum = self.declare_continuous_state(z=2)
        self.declare_tally(self.calc_energy if calc is None else calc, size=size)

    def calc_energy(self, context: Any) -> Any:
        x = self.u(context)
        return 0.5 * (x[0] * x[0] + x[1] * x[1])

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)


@pytest.mark.parametrize("how", [False, "python", True])
def test_a_tally_adds_up_what_projections_change(how: Any) -> None:
    """The other route: the energy that steps change and projections change back."""
    builder = fx.DiagramBuilder("both")
    orbit, counting = Orbit(), Counting()
    builder.add_all(orbit, counting)
    builder.connect(orbit.output, counting.u)
    system = builder.build()
    found = fx.simulate(system, 3.0, method="rk4", step=0.1, compiled=how).context
    # The energy of a step of this method is less by h⁶/72, which each projection puts back.
    assert found.continuous_state[2:] == pytest.approx([0.0, 30 * ENERGY * 1e-6 / 72.0], rel=0.05)


def declaring(projected: Any = np.zeros, **options: Any) -> None:
    """Declare a projection in a block of its own."""

    class Bad(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("bad")
            self.declare_continuous_state(z=1)
            self.declare_projection(np.zeros, projected, **options)

    Bad()


def test_a_block_that_cannot_be_traced_is_projected_in_python() -> None:
    class Untraced(Orbit):
        def calc_deviation(self, context: Any) -> Any:
            return float(super().calc_deviation(context))

    simulator = fx.Simulator(Untraced("untraced"), rtol=1e-4)
    simulator.advance_to(3.0)
    q, v = simulator.context.store.x
    assert abs(0.5 * (q * q + v * v) - ENERGY) <= 1e-9
    assert "cannot be projected" in simulator.explain()


@pytest.mark.full
def test_javascript_projects_as_native_loops_do() -> None:
    orbit = Orbit()
    times = np.linspace(0.0, 4.0, 9)
    for method in ("RK45", "DOP853", "Rodas5P"):
        model = fx.to_javascript(orbit, method=method)
        found = simulate(model, tFinal=4.0, method=method, rtol=1e-4, times=times.tolist())
        result = fx.simulate(orbit, 4.0, method=method, rtol=1e-4)
        assert found["state"] == pytest.approx(result.context.store.x, abs=1e-9)
        q, v = found["state"]
        assert abs(0.5 * (q * q + v * v) - ENERGY) <= 1e-9
    nowhere = fx.to_javascript(Nowhere())
    kept = simulate(nowhere, tFinal=1.0, maxStep=0.05)
    assert kept["outcome"] == "completed"
    assert "misses its tolerance at t = 0.5" in kept["message"]
    lost = simulate(nowhere, tFinal=1.0, maxStep=0.05, parameters={"away": 2000.0})
    assert lost["outcome"] == "failed"

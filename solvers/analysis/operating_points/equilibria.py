"""Equilibria: states with zero derivatives, found by damped Newton steps and homotopy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.plants.held_coordinates import Held, held_places
from flexure.diagrams.checks.errors import EvaluationError, FlexureError, quoted
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.updates import require_start
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.analysis.equations.equations import (
    Equations,
    find_variables,
    refuse_beyond_numbers,
    refuse_sampled,
    state_names,
)
from flexure.solvers.analysis.equations.tangents import open_stops, require_holding
from flexure.solvers.analysis.forces_at_rest.misleading_results import warn_of_misleading_limits
from flexure.solvers.analysis.forces_at_rest.static_coordinates import spinning
from flexure.solvers.analysis.operating_points.newton_steps import (
    NewtonSearch,
    SampleSteps,
    Turn,
    farthest_turn,
    warn_of_far,
)

_ROUNDING = 1e-15  # of states: what they move by it stands still, however stiff it is


@dataclass(frozen=True, eq=False)
class Equilibrium(Answer):
    """A context in equilibrium, and how it was found.

    Attributes
    ----------
    context : Context
        A new root context with the states, inputs and parameters that were found.
    residual : float
        Largest absolute time derivative of a state that is left, or what a period adds to one.
    iterations : int
        Number of Newton steps; from where a mechanism was released to, if that took forces.
    how : str
        Whether their Jacobian was exact or made of central differences, and why.

    See Also
    --------
    equilibrium : Find one.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, gain=3.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 1.0)
    >>> found = fx.equilibrium(lag, context)
    >>> found.context.get("x").round(6)
    array([3.])
    """

    context: Context
    residual: float
    iterations: int
    how: str

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.analysis.linear_models.linear_model_tables import equilibrium_pieces

        return equilibrium_pieces(self)


@in_one_thread
def equilibrium(
    system: System,
    context: Context | None = None,
    *,
    free: Way | Iterable[Way] = (),
    fixed: Held | Iterable[Held] = (),
    tolerance: float = 1e-9,
    max_iterations: int = 100,
    period: float | None = None,
    spin: npt.ArrayLike | None = None,
) -> Equilibrium:
    """Find states at which all time derivatives are zero.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        Starting point, a root context; it is not changed. Its time, discrete states, inputs and
        parameters stay. A default context when omitted.
    free : InputPort, NumericParameter, str or iterable of them, optional
        Free input ports and parameters to solve for as well, or components of them, by handle or
        path.
    fixed : Joint, handle, str or iterable of them, optional
        What keeps its value: a joint, or its path ``"plant.axis"``, for its positions; a state, or
        its path ``"door.x"``, for all components; ``"door.x[angle]"``, ``"arm.x[0]"`` or
        ``"plant.axis.angle"`` for one.
    tolerance : float
        A derivative counts as zero below ``tolerance (1 + sum of |∂ẋ/∂x x|)``, which are the terms
        that balance in it, and where it is no more than what 1e-15 of the states would change. If
        there are no steps left, the next one has to be short as well.
    max_iterations : int
        Largest number of Newton steps; five times as many for a continuation.
    period : float, optional
        For a diagram with periodic updates, as for `linearize`: found are states and discrete
        values from which a period leads back to the same.
    spin : array_like, shape (3,), optional
        Angular velocity in rad/s with which the world spins about its origin: a relative
        equilibrium. It is set as the parameter ``spin`` of all plants.

    Returns
    -------
    Equilibrium

    Raises
    ------
    DeclarationError
        When a plant is to spin that was built without ``spin``.
    EvaluationError
        When no equilibrium is found near the start, the derivatives there are not finite, or a
        sampled block follows the motion, so that the diagram has no continuous equations; with
        ``period``, as for `linearize`.
    UnknownNameError
        When a path or name does not exist, or an input is not free.
    ValueRefusedError
        When a parameter would have to leave its bounds.

    Warns
    -----
    UserWarning
        When a body turns by more than 90 degrees, so that another equilibrium may be nearer.

    See Also
    --------
    linearize : The linear model at the equilibrium.
    load_path : Follow equilibria over a load or stroke.

    Notes
    -----
    Damped Newton steps with the exact Jacobian, or with central differences where a block cannot
    be traced. Steps are as short as possible, each component measured by its starting value or 1,
    whichever is larger: with more unknowns than equations, or in a continuum of equilibria, one
    near the start is found, though not always the nearest.

    Variables on which the derivatives do not depend stay near the start: the turn of a hanging body
    about the vertical, and the states of pure integrators that nothing reads, such as those of an
    `EnergyLedger`. An integrator of something that does not become zero has no equilibrium and is
    refused. `linearize` shows a pole at zero for each such direction.

    If damped Newton steps fail to converge or converge very slowly, for example in a beam under a
    large load, a continuation (homotopy) is used: fictitious accelerations balance the starting
    point and are then reduced to zero in steps. If this fails in a mechanism without ``free`` and
    ``fixed``, fictitious forces are reduced along the arc length of their path. The result is the
    equilibrium that such a slow release reaches. If no release reaches one, slow Newton steps are
    continued.

    If a body of a mechanism turns by more than 90 degrees, the continuation is tried as well. The
    equilibrium with the smaller rotation is returned, with a warning if the rotation is still
    larger than 90 degrees.

    A world that accelerates steadily by a is one with gravity less a: set ``plant.gravity``.

    In mechanisms, velocities become exactly zero, and locked joints stay where they are.
    Quaternions of joints are brought to length 1, unless a component of the state is fixed that
    this would change.

    The equilibrium may be unstable; check the poles of `linearize`.

    With ``period``, the change of states and discrete values over one period becomes zero, by the
    linear model at each point; this is exact at rest. Discrete values that follow neither states
    nor inputs stay what they are.

    Examples
    --------
    The torque that holds a pendulum at 30 degrees:

    >>> import flexure as fx
    >>> class Pendulum(fx.LeafSystem):
    ...     def __init__(self):
    ...         super().__init__("pendulum")
    ...         self.state = self.declare_continuous_state(
    ...             q=1, v=1, default=[np.pi / 6, 0.0], element_names=["angle", "rate"]
    ...         )
    ...         self.torque = self.declare_vector_input("torque", 1, default=0.0)
    ...
    ...     def calc_time_derivatives(self, context):
    ...         angle, rate = self.state(context)
    ...         return [rate, self.torque(context) - 9.81 * np.sin(angle)]
    >>> pendulum = Pendulum()
    >>> found = fx.equilibrium(pendulum, free=["torque"], fixed=["x[angle]"])
    >>> pendulum.torque.eval(found.context)
    array([4.905])
    """
    require_system(system, "Cannot find an equilibrium")
    attempt = f"Cannot find an equilibrium of '{system.label}'"
    return settled(
        system,
        spinning(system, context, spin, attempt),
        attempt,
        free=free,
        fixed=fixed,
        tolerance=tolerance,
        max_iterations=max_iterations,
        period=period,
    )


def settled(
    system: System,
    context: Context | None,
    attempt: str,
    *,
    free: Way | Iterable[Way] = (),
    fixed: Held | Iterable[Held] = (),
    tolerance: float = 1e-9,
    max_iterations: int = 100,
    period: float | None = None,
    flow: Equations | None = None,
) -> Equilibrium:
    """Return what `equilibrium` does, for what is attempted with it.

    With a ``flow``, its equations are used, and its context is changed.
    """
    start = start_context(system, context, attempt)
    if flow is not None:
        flow.context.copy_from(start)
        start = flow.context
    if period is None:
        refuse_sampled(start, attempt, "Pass period= for that of samples, or use the plant only")
    for option, value in (("tolerance", tolerance), ("max_iterations", max_iterations)):
        bounded(value, f"{attempt} with this {option}", lower=0.0)
    variables = find_variables(start, free, attempt)
    unknown = _unknown(attempt, start, fixed, sum(len(v.keys) for v in variables))
    if period is None:
        flow = flow or Equations(start, variables, shares=True)
        equations: Equations | SampleSteps = flow
        names = state_names(start)
        point, moving, needed = _standstill(start, flow, unknown)
    else:
        equations = SampleSteps(start, variables, period, attempt)
        names, num_states = equations.names, start.store.layout.num_states
        held = np.ones(len(names) - num_states, dtype=bool)
        unknown = moving = np.concatenate([unknown[:num_states], held, unknown[num_states:]])
        point, needed = equations.point(), np.ones(len(names), dtype=bool)
    search = NewtonSearch(equations, moving, needed, _normal_form(start, unknown), max_iterations)
    begin = search.normal(point)
    refuse_beyond_numbers(equations.values(begin)[: len(names)], names, "rates", attempt)
    is_free = period is None and not variables and bool(np.all(unknown))
    ways = _ways(search, begin, start if is_free else None)
    point, iterations, worst, turn = _nearest(start, begin, equations, ways, tolerance)
    values = equations.values(point)
    if iterations >= max_iterations and worst is None and not np.all(values == 0.0):
        # Rates that tend to zero as states run away are small, and the next step is not.
        worst = search.farthest(point)
    if worst is not None:
        expected, moved = "derivatives that become zero", "rate"
        if isinstance(equations, SampleSteps):
            expected, moved = "a period that changes nothing", "change"
        remedy = "Raise max_iterations, start" if iterations == max_iterations else "Start"
        remedy += " nearer to an equilibrium, or name free= inputs that can hold it"
        stops = open_stops(start)
        if stops:
            remedy += (
                f". To find a rest position on {quoted(stops)}, start in contact, as at the end "
                "of a simulation"
            )
        raise EvaluationError(
            attempt,
            expected=expected,
            found=f"a {moved} of {names[worst]} of {values[worst]:.6g} where it is "
            f"{point[worst]:.6g}, after {iterations} steps",
            remedy=remedy,
        )

    result = start_context(system, context, attempt)
    if isinstance(equations, SampleSteps):
        equations.write(result, point)
    else:
        result.continuous_state = point[: len(names)]
    position = len(names)
    for variable in variables:
        variable.set(result, point[position : position + len(variable.keys)])
        position += len(variable.keys)
    require_holding(result, attempt)
    require_start(result)  # what stands still may be held open by redundant constraints
    residual = float(np.max(np.abs(values), initial=0.0))
    warn_of_misleading_limits([result], f"The equilibrium of '{system.label}'")
    warn_of_far(turn, system.label)
    return Equilibrium(result, residual, iterations, equations.how)


def _nearest(
    start: Context,
    begin: FloatArray,
    equations: Equations | SampleSteps,
    ways: Iterator[tuple[FloatArray, int]],
    tolerance: float,
) -> tuple[FloatArray, int, int | None, Turn]:
    """Return the first point at rest to which no body turns far, else the one with least turn.

    It is where the last way ends when none ends at rest. With it come the number of steps, which
    derivative is farthest from zero there, if one is not, and the turn of the body that turns
    farthest.
    """
    found, nearest = None, None
    size = start.store.layout.num_states
    for point, iterations in ways:
        worst = _worst(equations, point, tolerance)
        turn = farthest_turn(start, begin[:size], point[:size])
        found = point, iterations, worst, turn
        if worst is None and (nearest is None or turn.angle < nearest[3].angle):
            nearest = found
        if nearest is not None and not nearest[3].is_far:
            break
    assert found is not None  # there is one way at least
    return nearest or found


def _unknown(
    attempt: str, context: Context, fixed: Held | Iterable[Held], num_free: int
) -> npt.NDArray[np.bool_]:
    """Return which components of states and free variables are to be found."""
    layout = context.store.layout
    unknown = np.ones(layout.num_states + num_free, dtype=bool)
    for place in held_places(context.system, fixed, attempt):
        leaf = context.find_leaf(place.handle.system, place.handle)
        unknown[leaf.x_slice.start + place.components] = False
    return unknown


def _normal_form(
    context: Context, unknown: npt.NDArray[np.bool_]
) -> Callable[[FloatArray], FloatArray]:
    """Return what brings a point to its normal form, where that leaves fixed components alone."""
    states = [(leaf.x_slice, leaf.system.continuous_state) for leaf in context.leaves()]
    parts = [(part, state.normalize) for part, state in states if state and state.normalize]

    def normal(point: FloatArray) -> FloatArray:
        result = point.copy()
        for part, normalize in parts:
            numbers = normalize(point[part])
            if np.array_equal(numbers[~unknown[part]], point[part][~unknown[part]]):
                result[part] = numbers
        return result

    return normal


def _standstill(
    context: Context, equations: Equations, unknown: npt.NDArray[np.bool_]
) -> tuple[FloatArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Stop what must stand still; return the point, what is left to be found and to become zero."""
    # Where q̇ = N v with independent columns of N, no v but zero will do. To know it at once keeps
    # friction and damping out of the search, which would hold anything at a small velocity.
    # Positions that nothing accelerates stay as well, and so do those of locked joints, whose
    # velocities move nothing.
    point, unknown = equations.point(), unknown.copy()
    parts = []
    for leaf in context.leaves():
        state, start = leaf.system.continuous_state, leaf.x_slice.start
        if state is not None and state.num_v:
            v = slice(start + state.num_q, start + state.num_q + state.num_v)
            parts.append((slice(start, v.start), v))
    stopped = point.copy()
    for _, v in parts:
        stopped[v] = np.where(unknown[v], 0.0, point[v])
    rates, matrix = equations.values(stopped), equations.jacobian(stopped)
    needed = np.ones(rates.shape, dtype=bool)
    for q, v in parts:
        N, others = matrix[q, v], np.delete(matrix[q], v, axis=1)
        is_linear = not (np.any(rates[q]) or np.any(others) or np.any(stopped[v]))
        if not (is_linear and np.isfinite(N).all()):
            continue
        unaccelerated = ~np.any(np.column_stack([rates[v], matrix[v]]), axis=1)
        locked = unaccelerated & ~np.any(N, axis=0)  # velocities that move nothing
        if np.linalg.matrix_rank(N) == np.sum(~locked):
            point[v], needed[q], unknown[v] = 0.0, False, False
            unknown[q] &= ~np.any(N[:, unaccelerated], axis=1)
            if np.any(locked):
                nearby = stopped.copy()  # where no entry of N is zero by chance
                nearby[q] += 1e-3 * (1.0 + np.arange(q.stop - q.start) / (q.stop - q.start))
                unknown[q] &= np.any(equations.jacobian(nearby)[q, v], axis=1)
    return point, unknown, needed


def _ways(
    search: NewtonSearch, begin: FloatArray, free: Context | None
) -> Iterator[tuple[FloatArray, int]]:
    """Yield where one way after the other ends, and the number of its steps."""
    # Damped steps that crawl wait until the other ways have been tried; where they end comes last.
    damped = search.damped(begin)
    end = next(damped)
    yield end
    yield search.released(begin)
    resting = None if free is None else _statically_released(free, begin)
    if resting is not None:
        yield from search.damped(search.normal(resting))
    yield next(damped, end)


def _statically_released(context: Context, x: FloatArray) -> FloatArray | None:
    """Return the states of a mechanism after the forces that hold it at some are released.

    Constant accelerations are other forces wherever a mechanism goes, so that no way may lead from
    them to rest. Forces that balance its own ones are released along the arc length of their curve,
    which is the load path of a mechanism that starts without stress. None where nothing comes to
    rest so, or the system is none that statics describes.
    """
    from flexure.solvers.analysis.forces_at_rest.curve_points import LostError
    from flexure.solvers.analysis.forces_at_rest.path_following import released
    from flexure.solvers.analysis.forces_at_rest.static_coordinates import size_of
    from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations

    with suppress(FlexureError, LostError):
        start = context.clone()
        start.continuous_state = x
        forces = StaticEquations(start, attempt="Cannot release a mechanism")
        if forces.obstacle is None:
            return released(forces, size_of(start), x, np.zeros(0))[0]
    return None


def _worst(equations: Equations | SampleSteps, point: FloatArray, tolerance: float) -> int | None:
    """Return which derivative is farthest from zero; None if all of them are zero."""
    values = equations.values(point)
    with np.errstate(all="ignore"):
        slopes, size = np.abs(equations.jacobian(point)), np.abs(point)
        terms = 1.0 + slopes @ size
        terms[~np.isfinite(terms)] = 1.0
        excess = np.nan_to_num(np.abs(values) / terms, nan=np.inf)
        rounding = _ROUNDING * (slopes @ np.maximum(size, 1.0))
        excess[(np.abs(values) <= rounding) & np.isfinite(rounding)] = 0.0
    return int(np.argmax(excess)) if np.any(excess > tolerance) else None

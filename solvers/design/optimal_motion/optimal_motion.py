"""Optimal motions: the inputs that bring a system from a start to an end at the smallest cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.recorded import Recorded
from flexure.diagrams.checks.arguments import count_of, flag, one_of, require
from flexure.diagrams.checks.errors import EvaluationError, quoted, warn
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.updates import initialize
from flexure.diagrams.contexts.value_places import path_of, several
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, bounded, freeze
from flexure.solvers.design.optimal_motion.casadi_form import import_casadi
from flexure.solvers.design.optimal_motion.collocation import FIRST, KINDS, METHODS, Collocation
from flexure.solvers.design.optimal_motion.motion_problem import MotionProblem
from flexure.solvers.design.optimal_motion.motion_replay import states_of
from flexure.solvers.design.optimal_motion.motion_search import Found, MotionSearch
from flexure.solvers.design.optimal_motion.phases import Phase, phases_of
from flexure.solvers.design.optimal_motion.transcription import Plan
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_INTERVALS = 5000
_SAMPLES = 201  # of each phase of a run that is a guess


@dataclass(frozen=True, eq=False, repr=False)
class OptimalMotion(Answer):
    """The result of `optimal_motion`: inputs over time, and the resulting motion.

    ``motion["hinge.angle"]`` is a signal of the replay at the times ``motion.time``.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Nodes of the mesh in seconds; two at each state event, before and behind it.
    inputs : dict
        The inputs at these times by path: arrays of shape (k,) or (k, size). Between them, inputs
        follow straight lines, or are held with ``kind="hold"``.
    states : ndarray, shape (k, n)
        The planned states at these times, with the names ``state_names``.
    state_names : tuple of str
        Paths of the states.
    cost : float
        The smallest cost.
    t_final : float
        End of the motion in seconds.
    replay : SimulationResult or None
        The simulation with these inputs. The system is a block of a diagram there.
    replay_error : float
        Largest distance between replay and plan over all states and nodes, in units of the largest
        magnitude of the state during the motion. Infinite where the replay failed.
    outcome : {"solved", "interrupted", "failed"}
        How the search ended. Only results that errors carry are not solved.
    intervals, iterations, refinements : int
        Size of the mesh, iterations of the solver, and how often the mesh was refined.
    event_times : ndarray
        Times of the state events on the way in seconds.
    how : str
        Method and mesh in words.
    system : System
        What moves.
    context : Context
        A root context at the start of the motion.

    See Also
    --------
    optimal_motion : Search for the motion.
    """

    time: FloatArray
    inputs: dict[str, FloatArray]
    states: FloatArray
    state_names: tuple[str, ...]
    cost: float
    t_final: float
    replay: SimulationResult | None
    replay_error: float
    outcome: str
    intervals: int
    iterations: int
    refinements: int
    event_times: FloatArray
    how: str
    system: System
    context: Context
    _kind: str = field(repr=False)
    _shown: tuple[str, ...] = field(repr=False)
    _plan: Plan = field(repr=False)
    _phases: list[Phase] = field(repr=False)

    def __getitem__(self, signal: Signal) -> FloatArray:
        return self.sample(signal, self.time)

    def sample(self, signal: Signal, times: npt.ArrayLike) -> FloatArray:
        """Return a signal of the replay at given times.

        Parameters
        ----------
        signal : Handle or str
            A port or state of the system, or its path.
        times : array_like
            Ascending times within the motion, in seconds.

        Returns
        -------
        ndarray, shape (k,) or (k, size)
        """
        return self._replay().sample(self._inside(signal), times)

    def to_block(self, name: str = "motion", signals: Signal | Sequence[Signal] = ()) -> Recorded:
        """Return a source that plays the inputs, with an output port for each component.

        Parameters
        ----------
        name : str
            Name of the block.
        signals : Handle, str or sequence of them
            Signals of the motion to play as well, such as setpoints of a controller that tracks
            it.

        Returns
        -------
        Recorded
            Its ports are called by the last part of each path, or by the whole one with
            underscores if two have the same.
        """
        columns = dict(self.inputs)
        for each in several(signals):
            columns[path_of(each)] = self[each]
        last = [path.rpartition(".")[2] for path in columns]
        table: dict[str, Any] = {"time": self.time}
        for short, (path, values) in zip(last, columns.items(), strict=True):
            table[short if last.count(short) == 1 else path.replace(".", "_")] = values
        longest = float(self.time[-1] - self.time[0])
        return Recorded(name, table, kind=self._kind, gap=longest)  # type: ignore[arg-type]

    def plot(self, *signals: Any, path: str | Path | None = None) -> Figure:
        """Plot signals of the replay.

        Parameters
        ----------
        *signals : Handle, str or sequence of them
            As for `SimulationResult.plot`; inputs and all signals with bounds or costs when
            omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        chosen = [
            self._inside(each) if isinstance(each, str) else [*map(self._inside, several(each))]
            for each in signals or self._shown
        ]
        numbers = f"cost {self.cost:.6g}, replay error {self.replay_error:.2g}"
        title = f"Optimal motion of {self.system.label}: {numbers}"
        return self._replay().plot(*chosen, title=title, path=path)

    def _replay(self) -> SimulationResult:
        if self.replay is None:
            raise EvaluationError(
                f"Cannot read signals of the motion of '{self.system.label}'",
                expected="a motion that was simulated",
                found=f"one that is not: {self.outcome}",
                remedy="Read time, inputs and states, which are those of the plan",
            )
        return self.replay

    def _inside(self, signal: Signal) -> str:
        """Return the path of a signal in the diagram of the replay."""
        return f"{self.system.name}.{path_of(signal)}"

    def __str__(self) -> str:
        unsolved = "" if self.outcome == "solved" else f"NOT SOLVED: {self.outcome}\n"
        return (
            f"{unsolved}cost          {self.cost:.7g}\n"
            f"t_final       {self.t_final:.6g} s\n"
            f"replay error  {self.replay_error:.2g}\n"
            f"{self.how}"
        )

    def __repr__(self) -> str:
        doubt = "" if self.outcome == "solved" else f", {self.outcome}"
        return (
            f"<OptimalMotion of '{self.system.label}': cost {self.cost:.6g} in {self.t_final:.5g} s"
            f"{doubt}, replay error {self.replay_error:.2g}>"
        )


def optimal_motion(
    system: System,
    context: Context | None,
    t_final: float | tuple[float, float],
    *,
    inputs: Mapping[Any, Any],
    start: Mapping[Any, Any] | None = None,
    end: Mapping[Any, Any] | None = None,
    path: Mapping[Any, Any] | None = None,
    cost: Mapping[Any, Any] | None = None,
    final_cost: Mapping[Any, Any] | None = None,
    targets: Mapping[Any, Any] | None = None,
    intervals: int = 40,
    method: Literal["hermite_simpson", "radau"] = "hermite_simpson",
    kind: Literal["linear", "hold"] = "linear",
    guess: Literal["straight", "simulated"] | OptimalMotion | SimulationResult = "straight",
    tolerance: float = 1e-4,
    max_refinements: int = 5,
    max_iterations: int = 1000,
    progress: bool = False,
) -> OptimalMotion:
    r"""Find the inputs that move a system to an end at the smallest cost.

    The problem is to minimize

    .. math:: \sum_j w_j \int_{t_0}^{T} (y_j - r_j)^2 dt + \sum_k c_k y_k(T) + c_T T

    subject to the equations of the system, and to bounds of inputs, states and signals.

    Parameters
    ----------
    system : System
        A block or diagram whose equations can be traced, without sampled blocks. State events need
        a guess that passes through them.
    context : Context or None
        A root context with the time and states of the start and all other values; it is not
        changed. None for a default context.
    t_final : float or (float, float)
        End of the motion in s, or its bounds if it is free.
    inputs : mapping
        Free input ports with their bounds: ``{"motor": (-10.0, 10.0)}``. None is no bound.
    start : mapping, optional
        States that begin elsewhere than in the context: a value, bounds ``(low, high)``, or None
        if they are free.
    end : mapping, optional
        Values or bounds of states and ports at the end. What is not named is free.
    path : mapping, optional
        Bounds of states and ports during the motion.
    cost : mapping, optional
        Weights of squares that are integrated, by state or port: ``{"motor": 1.0}``. Without any
        cost, the final time if it is free, and else the squares of all inputs.
    final_cost : mapping, optional
        Weights of states and ports at the end, negative to make them large; ``"t_final"`` is the
        final time.
    targets : mapping, optional
        Values from which the signals of ``cost`` are to differ little; 0 when omitted.
    intervals : int
        Intervals of the first mesh, between state events.
    method : {"hermite_simpson", "radau"}
        Collocation at the ends and the middle of each interval (Lobatto IIIA, order 4), or at three
        points behind its beginning (Radau IIA, order 5), which damps stiff modes.
    kind : {"linear", "hold"}
        Whether inputs follow straight lines between the nodes of the mesh, or are held.
    guess : {"straight", "simulated"}, OptimalMotion or SimulationResult
        Where the solver begins: straight lines from start to end, a simulation with the inputs of
        the context, a former motion, or a run of the same system. The motion passes through the
        same state events as the last three, in the same order, at times that are free.
    tolerance : float
        Largest error of the replay, see `OptimalMotion`.
    max_refinements : int
        How often the mesh can be refined.
    max_iterations : int
        Most iterations of the solver on one mesh.
    progress : bool
        Whether to show the number of iterations on a terminal or in a notebook.

    Returns
    -------
    OptimalMotion

    Raises
    ------
    DeclarationError
        When it is no system.
    MissingExtraError
        When CasADi is not installed (extra ``optimal``).
    UnknownNameError, ContextError, ValueRefusedError
        When something is not found, or a bound is not valid.
    TraceError
        When the equations cannot be traced.
    EvaluationError
        When equations jump, an event sets a discrete value that depends on states and acts on the
        motion, no motion keeps the bounds, or the solver finds none. Its attribute
        ``result`` is then the `OptimalMotion` that comes nearest, or None.
    KeyboardInterrupt
        When it is interrupted. Its attribute ``result`` is the best motion so far, or None.

    Warns
    -----
    UserWarning
        When the error of the replay exceeds the tolerance on the finest mesh.

    See Also
    --------
    optimize : Search for parameters.
    lqr : Feedback that keeps a system near a point.
    Recorded : Play the inputs in a diagram.

    Notes
    -----
    States are polynomials on intervals of time that satisfy the equations at a few points of each
    (direct collocation). IPOPT solves the nonlinear program; first and second derivatives are exact
    and sparse, and come from the trace of the equations through CasADi. States, inputs and
    constraints are scaled by their bounds and by the guess.

    The inputs are then played into the unmodified system by `simulate`. Where the replay leaves the
    plan by more than the tolerance, intervals are divided according to their residuals. Motions
    near an unstable equilibrium amplify all errors: there, the replay shows what the inputs do
    without feedback.

    Between state events, the motion consists of phases, each with its own states, inputs and
    duration. A phase ends where the witness function of its event is zero, and the next one begins
    with what the updates return. Functions that keep a sign during a phase of the guess keep it in
    the motion; the replay shows whether other events occur. Inputs may jump at events.

    The solution is a local one: another guess can lead to another motion. Quaternions and closed
    loops are projected at the end of each interval, as in simulations. Bounds hold at the points of
    collocation; signals can exceed them in between.

    Examples
    --------
    Moving a mass by 1 m in 1 s, from rest to rest, takes a force of 6 - 12 t, and its squares
    integrate to 12:

    >>> import flexure as fx
    >>> cart = fx.StateSpace("cart", [[0.0, 1.0], [0.0, 0.0]], [0.0, 1.0], [1.0, 0.0])
    >>> motion = fx.optimal_motion(
    ...     cart, None, 1.0, inputs={"u": None}, end={"x": [1.0, 0.0]}, cost={"u": 1.0}
    ... )
    >>> round(motion.cost, 6), motion.inputs["u"][[0, -1]].round(4)
    (12.0, array([ 6., -6.]))
    """
    require_system(system, "Cannot optimize a motion")
    attempt = f"Cannot optimize the motion of '{system.label}'"
    base = start_context(system, context, attempt)
    initialize(base)  # as the replay does
    problem = MotionProblem(
        base,
        attempt,
        t_final=t_final,
        inputs=inputs,
        start=start,
        end=end,
        path=path,
        cost=cost,
        final_cost=final_cost,
        targets=targets,
        through_events=not isinstance(guess, str) or guess == "simulated",
    )
    first = count_of(intervals, "intervals", attempt, minimum=1)
    require(first <= _MOST_INTERVALS, intervals, attempt, f"at most {_MOST_INTERVALS} intervals")
    most = count_of(max_iterations, "max_iterations", attempt, minimum=1)
    finest = count_of(max_refinements, "max_refinements", attempt, minimum=0)
    error_bound = bounded(tolerance, f"{attempt} with this tolerance", lower=1e-9, upper=1.0)
    name = one_of(method, METHODS, "method", attempt)
    how = one_of(kind, KINDS, "kind", attempt)
    show = flag(progress, "progress", attempt)
    begin = _first_plan(problem, guess, attempt)
    ca = import_casadi(attempt)
    with ProgressBar(0.0, float(most), show, unit="iterations", doing="optimizing") as bar:
        search = MotionSearch(
            ca,
            problem,
            method=name,
            kind=how,
            tolerance=error_bound,
            max_refinements=finest,
            max_iterations=most,
            watch=lambda k: bar.update(float(min(k, most))),
        )
        try:
            found = search.run(first, begin)
        except (EvaluationError, KeyboardInterrupt) as error:
            outcome = "failed" if isinstance(error, EvaluationError) else "interrupted"
            last = search.found
            error.result = (  # type: ignore[union-attr]
                None if last is None else _answer(problem, last, name, how, outcome)
            )
            raise
    if not found.replay_error <= error_bound:
        warn(
            f"The replay of the motion of '{system.label}' differs from its plan by "
            f"{found.replay_error:.2g}, more than the tolerance {error_bound:g}, on "
            f"{found.plan.collocation.intervals} intervals. Raise intervals or max_refinements; "
            "if the motion is unstable, add feedback around it"
        )
    return _answer(problem, found, name, how, "solved")


def _first_plan(problem: MotionProblem, guess: Any, attempt: str) -> Plan:
    """Return the guess as a plan on a mesh of its own."""
    if isinstance(guess, OptimalMotion):
        require(guess.system is problem.system, guess, attempt, "a motion of the same system")
        paths = [each.place.path for each in problem.inputs]
        expected = f"a motion with the same inputs, {quoted(paths)}, as guess"
        require([*guess.inputs] == paths, quoted(guess.inputs), attempt, expected)
        problem.phases = guess._phases
        return guess._plan
    low, high = problem.duration
    duration = 0.5 * (low + high)
    held = problem.held_inputs()
    start = np.clip(problem.context.store.x, problem.start_lower, problem.start_upper)
    if isinstance(guess, SimulationResult):
        require(guess.system is problem.system, guess, attempt, "a run of the same system")
        span = float(np.clip(guess.time[-1] - guess.time[0], low, high))
        return _plan_of_run(problem, guess, guess.context.clone(), span)
    one_of(guess, ("straight", "simulated"), "guess", attempt)
    if guess == "simulated":
        first = problem.context.clone()
        first.continuous_state = start
        for each, numbers in zip(problem.inputs, _parts(problem, held), strict=True):
            each.set(first, numbers)
        run = simulate(problem.system, problem.context.time + duration, context=first)
        return _plan_of_run(problem, run, first, duration)
    last = _straight_end(problem, start)
    return _plan_of(
        np.column_stack([start, last]), np.column_stack([held, held]), np.array([duration])
    )


def _plan_of_run(
    problem: MotionProblem, run: SimulationResult, context: Context, duration: float
) -> Plan:
    """Return the states and inputs of a run, with its phases if it passes through events."""
    problem.set_phases(phases_of(context, problem.switches, run, problem.attempt))
    paths = [each.place.path for each in problem.inputs]
    states, inputs = [], []
    for phase in problem.phases:
        times = np.linspace(phase.begin, phase.end, _SAMPLES)
        columns = run.sample_all(paths, times)
        inputs += [np.reshape(each, (len(times), -1)).T for each in columns]
        states.append(states_of(run, times))
        if phase.event is not None:
            states[-1][:, -1] = phase.last
    spans = np.array([phase.end - phase.begin for phase in problem.phases])
    spans *= duration / float(np.sum(spans))
    return _plan_of(np.concatenate(states), np.concatenate(inputs), spans)


def _parts(problem: MotionProblem, numbers: FloatArray) -> list[FloatArray]:
    """Return the numbers of all components by input."""
    ends = np.cumsum([len(each.keys) for each in problem.inputs])
    return np.split(numbers, ends[:-1])


def _straight_end(problem: MotionProblem, start: FloatArray) -> FloatArray:
    """Return the start, moved into the bounds of states at the end."""
    last = start.copy()
    row = 0
    indices: dict[int, int] = {}
    for slot, components in problem.signals:
        for component in components:
            if slot is None:
                indices[row] = component
            row += 1
    for each in problem.end:
        for k, low, high in zip(each.rows, each.lower, each.upper, strict=True):
            if k in indices:
                last[indices[k]] = np.clip(last[indices[k]], low, high)
    return last


def _plan_of(states: FloatArray, inputs: FloatArray, durations: FloatArray) -> Plan:
    """Return states and inputs at equal distances as a plan of straight lines."""
    count = states.shape[1] - 1
    mesh = np.linspace(0.0, 1.0, count + 1)
    return Plan(StraightLines(mesh), states, inputs, durations, np.zeros((0, 0)), np.nan)


class StraightLines(Collocation):
    """A mesh between whose nodes states and inputs follow straight lines: that of a guess."""

    def __init__(self, mesh: FloatArray) -> None:
        super().__init__("hermite_simpson", FIRST, "linear", mesh)

    def states_at(self, states: FloatArray, rates: FloatArray, instants: FloatArray) -> FloatArray:
        """Return states at instants."""
        return np.array([np.interp(instants, self.mesh, row) for row in states])


def _answer(
    problem: MotionProblem, found: Found, method: str, kind: str, outcome: str
) -> OptimalMotion:
    """Return what a search found in the terms of the user."""
    plan, context = found.plan, problem.context.clone()
    collocation = plan.collocation
    context.store.set_motion(context.time, freeze(plan.states[: len(problem.states), 0].copy()))
    values = plan.along(plan.node_inputs)
    inputs = {
        each.place.path: freeze(part[0].copy() if len(part) == 1 else part.T.copy())
        for each, part in zip(problem.inputs, _parts(problem, values), strict=True)
    }
    named: list[Any] = [*problem.squares, *problem.path, *problem.end]
    chosen = [*inputs, *(each.path for each in named)]
    words = {"hermite_simpson": "Hermite-Simpson", "radau": "Radau"}[method]
    again = f", refined {found.refinements} times" if found.refinements else ""
    return OptimalMotion(
        time=freeze(plan.node_times(problem.context.time)),
        inputs=ByPath(problem.system, inputs, "the inputs of the motion"),
        states=freeze(plan.along(plan.nodes).T.copy()),
        state_names=tuple(problem.states),
        cost=plan.cost,
        t_final=problem.context.time + plan.duration,
        replay=found.replay,
        replay_error=found.replay_error,
        outcome=outcome,
        intervals=collocation.intervals,
        iterations=found.iterations,
        refinements=found.refinements,
        event_times=freeze(plan.times_at(problem.context.time, np.zeros(1))[1:, 0]),
        how=f"{words} on {collocation.intervals} intervals{again}, {found.iterations} iterations",
        system=problem.system,
        context=context,
        _kind=kind,
        _shown=tuple(dict.fromkeys(chosen)),
        _plan=plan,
        _phases=problem.phases,
    )

"""Load paths: equilibria followed along a load, a stroke or a parameter, and their stability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import import_extra, is_whole, require
from flexure.diagrams.checks.errors import FlexureError, warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import (
    Place,
    Way,
    find_place,
    is_signal,
    path_of,
    several,
    shows_state,
)
from flexure.diagrams.interface.html import heading
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds, freeze
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.equations.equations import find_ports, write_variables
from flexure.solvers.analysis.forces_at_rest.misleading_results import warn_of_misleading_limits
from flexure.solvers.analysis.forces_at_rest.path_following import CROSSED
from flexure.solvers.analysis.forces_at_rest.static_coordinates import plants_in
from flexure.solvers.analysis.forces_at_rest.static_equations import SLIGHT, StaticEquations
from flexure.solvers.analysis.modes.modes import checked_number
from flexure.solvers.analysis.statics.load_paths.path_run import (
    NO_POTENTIAL,
    PathRun,
    count_growing,
    may_drive,
    path_plan,
)

if TYPE_CHECKING:
    from flexure.solvers.analysis.statics.load_paths import load_path_plots
else:
    load_path_plots = Deferred("flexure.solvers.analysis.statics.load_paths.load_path_plots")

_ROWS = 40  # points in a notebook
_MOVES = 0.05  # part of the largest amplitude that is mentioned, and
_NAMED = 6  # of how many coordinates


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A point of a load path with a zero stiffness or singular constraints.

    Attributes
    ----------
    kind : str
        ``"limit"`` where the load, or the stroke, turns back, and ``"branch"`` where another path
        crosses. Mechanisms with constraints also have ``"change point"``, at which the mechanism
        can move on in a second way, whatever the forces are, and ``"dead point"``, at which the
        driven joint cannot move the mechanism: the path reverses, and the driving force tends to
        infinity.
    index : int
        Number of the point in the path.
    values : dict
        What was varied, at this point, by path.
    shape : dict of float
        The small motion that nothing resists: amplitude of each joint coordinate, and of each other
        state that takes part, by path; the largest one is 1, angles in rad beside translations in
        parts of the size of the mechanism.

    See Also
    --------
    load_path : Follow a path, and find these points.

    Examples
    --------
    >>> import flexure as fx
    >>> point = fx.results.SpecialPoint("limit", 4, {"generalized_force": -0.19}, {"tip": 1.0})
    >>> point.kind, point.values["generalized_force"]
    ('limit', -0.19)
    """

    kind: str
    index: int
    values: dict[str, Any]
    shape: dict[str, float]

    @property
    def moves(self) -> str:
        """The moving coordinates, in words: those with at least 5 % of the largest amplitude."""
        ordered = sorted(self.shape.items(), key=lambda item: -abs(item[1]))
        parts = [f"{name} {a:+.2g}" for name, a in ordered if abs(a) >= _MOVES]
        more = len(parts) - _NAMED
        return ", ".join(parts[:_NAMED]) + (f" and {more} more" if more > 0 else "")

    def __repr__(self) -> str:
        shown = {
            name: np.array2string(np.asarray(v), precision=6) for name, v in self.values.items()
        }
        values = ", ".join(f"{name} = {text}" for name, text in shown.items())
        return f"<SpecialPoint: {self.kind} at {values}; moves {self.moves}>"


class LoadPath(Answer):
    """Equilibria along a load, a stroke or a parameter: a curve of N points.

    Points are in the order in which the path goes through them, also where the load turns back.
    ``path["switch.angle"]`` is what was varied, a signal or any other output or state there.

    Attributes
    ----------
    system : System
        Whose path it is.
    values : dict of ndarray
        What was varied, at each point, by path: arrays with N entries, or N rows.
    required : dict of ndarray
        For each stroke the force that holds it, positive in the direction in which it grows; in N,
        and in N m where it is an angle. At zero, the mechanism stays there by itself.
    signals : dict of ndarray
        The recorded outputs.
    states : ndarray, shape (N, n)
        All states.
    num_unstable : ndarray of int, shape (N,)
        In how many ways small motions grow from each equilibrium, while strokes are held: negative
        stiffnesses or, where there are none, other growing motions, such as flutter under follower
        forces. -1, with a warning, where these depend on masses that are missing.
    stations : ndarray of int
        Which points are at the wanted values.
    special : tuple of SpecialPoint
        Limit points, branch points, and singular points of mechanisms.
    outcome : str
        "completed", or "failed".
    how : str
        Whether derivatives are exact or central differences, and why.

    See Also
    --------
    load_path : Follow one.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> path = fx.load_path(builder.build(), {"generalized_force": 5.0})
    >>> path["axis.angle"][-1].round(6)
    np.float64(0.1)
    >>> bool(path.stable.all())
    True
    """

    def __init__(
        self, run: PathRun, special: tuple[SpecialPoint, ...], signals: list[Place], outcome: str
    ) -> None:
        self._context, self._plan = run.context, run.plan
        self._numbers = np.array(run.numbers)
        self.system: System = run.context.system
        self.special = special
        self.outcome = outcome
        self.how = run.equations.how
        self.values = self._named(run.plan.values_of(self._numbers))
        self._reactions = np.array([stop.point.reactions for stop in run.stops])
        self.required = self._named(run.plan.required_of(self._reactions))
        self.states = np.array([stop.point.x for stop in run.stops])
        self._negative = np.array([stop.num_unstable for stop in run.stops], dtype=np.intp)
        self._asymmetry = np.array([stop.point.asymmetry for stop in run.stops])
        self.stations = np.flatnonzero([stop.station for stop in run.stops])
        self.signals = self._named({place.path: self._sampled(place) for place in signals})

    def _named(self, entries: dict[str, FloatArray]) -> dict[str, FloatArray]:
        return ByPath(self.system, entries, "what this load path has")

    @cached_property
    def num_unstable(self) -> npt.NDArray[np.intp]:
        """In how many ways small motions grow from each equilibrium, while strokes are held."""
        found = self._negative.copy()
        asked = (found == 0) & (may_drive(self._context) | (self._asymmetry > NO_POTENTIAL))
        # Coriolis forces can hold what stiffnesses, centrifugal ones among them, would release.
        asked |= any(plant.spin is not None for plant in plants_in(self.system))
        asked[[point.index for point in self.special]] = False
        if np.any(asked):
            rows = (self._numbers[asked], self.states[asked], self._reactions[asked])
            attempt = f"Cannot judge the stability of the load path of '{self.system.label}'"
            try:
                found[asked] = count_growing(self._context.clone(), self._plan, *rows, attempt)
            except FlexureError as error:
                unknown = asked & (self._asymmetry > SLIGHT)
                if np.any(unknown):
                    warn(f"{error} Points under forces without a potential do not count as stable")
                found[unknown] = -1
        return found

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """Whether each equilibrium is stable, while strokes are held."""
        return np.asarray(self.num_unstable == 0)

    @property
    def limit_points(self) -> tuple[SpecialPoint, ...]:
        """The points at which the load, or the stroke, turns back, dead points among them."""
        return tuple(point for point in self.special if point.kind not in CROSSED)

    @property
    def branch_points(self) -> tuple[SpecialPoint, ...]:
        """The points at which another path crosses this one, change points among them."""
        return tuple(point for point in self.special if point.kind in CROSSED)

    @cached_property
    def energy(self) -> FloatArray:
        """Energy stored in gravity and force elements of all plants, at each point, in J."""
        ports = [Place.of(p.output_port("potential_energy")) for p in plants_in(self.system)]
        parts = [np.zeros(len(self)), *(self._sampled(port) for port in ports)]
        return np.asarray(np.sum(parts, axis=0))

    def context(self, index: int) -> Context:
        """Return a context that is at a point: states, inputs and parameters.

        Where nothing feeds the input ``generalized_force`` of a plant, the forces that hold strokes
        are added there, so that it is at rest. There they are forces along joints, which go with
        the joints.

        Parameters
        ----------
        index : int
            Number of the point, which may count from the end.
        """
        attempt = f"Cannot find a point of the load path of '{self.system.label}'"
        number = checked_number(index, len(self), "points", attempt)
        context = self.state_at(number)
        if self._plan.held:
            equations = StaticEquations(context.clone(), (), self._plan.held, attempt=attempt)
            equations.coordinates.push(
                context, self._reactions[number] @ equations.point().directions
            )
        return context

    def state_at(self, number: int) -> Context:
        """Return a context that is where a point is, without the forces that hold strokes."""
        context = self._context.clone()
        self._move(context, number)
        return context

    def _extremes(self) -> Iterator[Context]:
        """Yield contexts where the path ends, and where each of what was varied is farthest."""
        for number in {len(self) - 1, *np.argmax(np.abs(self._numbers), axis=0).tolist()}:
            yield self.state_at(number)

    def _move(self, context: Context, number: int) -> None:
        write_variables(context.store, self._plan.variables, self._numbers[number])
        context.store.set_motion(context.store.time, freeze(self.states[number].copy()))

    def _sampled(self, place: Place) -> FloatArray:
        """Return a value at all points; one number for each where it has one component."""
        if shows_state(place.handle):
            shown = place.settable
            leaf = self._context.find_leaf(shown.handle.system, shown.handle)
            columns = self.states[:, leaf.x_slice.start + shown.components]
            return columns[:, 0] if place.components.size == 1 else columns
        context, found = self._context.clone(), []
        for number in range(len(self)):
            self._move(context, number)
            found.append(np.array(place.read(context), dtype=float))
        rows = np.array(found)
        return rows.reshape(len(self)) if place.components.size == 1 else rows

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, way: Way) -> FloatArray:
        """Return what was varied, or an output or state, at all points."""
        for known in (self.values, self.signals):
            if way in known:
                return known[path_of(way)]
        return self._sampled(find_place(self.system, way, is_signal))

    def table(self) -> Table:
        """Return a table with one row for each point.

        Columns are what was varied, the ``required`` force of each stroke, the signals, in how many
        directions the point is ``unstable``, and what is ``special``: ``"station"``, or the kind of
        a `SpecialPoint`.
        """
        columns = self._columns()
        marks = dict.fromkeys(range(len(self)), "") | dict.fromkeys(
            self.stations.tolist(), "station"
        )
        marks |= {point.index: point.kind for point in self.special}
        rows = zip(*columns.values(), self.num_unstable.tolist(), marks.values(), strict=True)
        return Table((*columns, "unstable", "special"), rows)

    def _columns(self) -> dict[str, FloatArray]:
        required = {f"required force on {name}": force for name, force in self.required.items()}
        return {**self.values, **required, **self.signals}

    def to_pandas(self) -> Any:
        """Return the ``table`` as a pandas DataFrame; for that, install ``flexure[data]``."""
        return self.table().to_pandas()

    def to_xarray(self) -> Any:
        """Return an xarray Dataset with the dimension point, and one variable per column."""
        xarray = import_extra("xarray")
        variables: dict[str, Any] = {}
        for name, rows in self._columns().items():
            dims = ["point", *(f"{name}_{k}" for k in range(rows.ndim - 1))]
            variables[name] = (dims, rows)
        variables["energy"] = ("point", self.energy, {"units": "J"})
        variables["unstable"] = ("point", self.num_unstable)
        return xarray.Dataset(variables, coords={"point": np.arange(len(self))})

    plot = load_path_plots.plot_load_path
    plot_mechanism = load_path_plots.plot_mechanism
    animate = load_path_plots.animate_path

    def _pieces(self) -> Iterator[str]:
        yield heading("Load path", self.system.label, self.how)
        yield self.table().to_html(_ROWS)

    def __repr__(self) -> str:
        names = ", ".join(f"'{name}'" for name in self.values)
        special = f", {len(self.limit_points)} limit points" if self.limit_points else ""
        special += f", {len(self.branch_points)} branch points" if self.branch_points else ""
        ended = "" if self.outcome == "completed" else f", {self.outcome}"
        return (
            f"<LoadPath of '{self.system.label}' along {names}: {len(self)} points{special}{ended}>"
        )


@in_one_thread
@answers_other_words
def load_path(
    system: System,
    along: Mapping[Any, Any],
    *,
    context: Context | None = None,
    signals: Way | Iterable[Way] = (),
    branch: int = 0,
    max_points: int = 1000,
) -> LoadPath:
    """Follow the equilibria of a mechanism along a load, a stroke or a parameter.

    Parameters
    ----------
    system : System
        A plant, or a diagram with plants.
    along : mapping
        The varied values, by handle or path: for each one the end value, or two or more values to
        pass through. All change together, in proportion to one number.

        - A numeric parameter or a free input, or a component of one: a load.
        - An output that positions decide, such as the angle of a joint, ``"axis.angle"``, or the
          position of a body, ``"slider.position[x]"``: a stroke. It is prescribed, and the force
          needed to hold it is computed (displacement control).
    context : Context, optional
        All other values, and where to look for the first equilibrium; a root context, which is not
        changed. A default context when omitted. Varied values with an end value alone start from
        their value there.
    signals : OutputPort, str or iterable of them, optional
        Outputs to record along the path.
    branch : int
        Number of the branch point at which to leave the path, counted from 1, in the direction of
        its shape; negative for the opposite direction. By default, the path continues straight on.
    max_points : int
        Largest number of points.

    Returns
    -------
    LoadPath

    Raises
    ------
    UnknownNameError
        When there is no such parameter, input or output.
    ValueRefusedError
        When a value is refused, or nothing can move.
    EvaluationError
        When there is no equilibrium to begin with, nothing resists some motion, which is named, or
        the path ends, as where an element is beyond its range. The attribute ``result`` of the
        error holds the path up to there.

    See Also
    --------
    equilibrium : One equilibrium.
    stiffness : Stiffness at a frame.
    buckling : Critical loads.
    track_stiffness : Stiffness along a path.

    Notes
    -----
    At an equilibrium, the generalized forces at rest are zero; masses count only as weights. Other
    states, such as the lag of an actuator, have their steady-state values. Time and discrete states
    stay constant, and so do coordinates that stick by friction.

    The path is followed by its arc length (E. Riks, International Journal of Solids and Structures
    15, 1979), so it goes on where the load has a maximum, and where the stroke turns back. Newton
    steps have exact derivatives, or central differences where equations cannot be traced. A path
    that turns back ends at ten times its range before its start, and any path at ``max_points``. A
    step moves angles by at most 0.1 rad, and lengths by a tenth of the size of the mechanism.

    An equilibrium is stable if small displacements need work: the stiffness
    ``K = -∂(forces)/∂(displacements)`` has no negative eigenvalue, with strokes held. Where forces
    have no potential, as with follower forces and controllers, or elements are not of the library,
    the poles of small motions count as well: none may grow (flutter), by a damping ratio below
    -1e-6. Points at which an eigenvalue of K becomes zero are located: a *limit point* if the load
    turns there, and a *branch point* otherwise, as where a column buckles. The onset of flutter is
    between two points of the path, and not located.

    Examples
    --------
    Two bars meet 0.1 m above the line between their supports, which are 2 m apart, and snap through
    under a force. Here is one half of them, a spring of 1000 N/m with a tip that slides:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("toggle", gravity=(0.0, 0.0, 0.0))
    >>> tip = builder.add_body("tip", fx.SpatialInertia.point_mass(1.0))
    >>> slider = builder.add_joint(fx.PrismaticJoint("slider", builder.world, tip, (0, 0, 1)))
    >>> slider.default_translation = 0.1
    >>> ends = builder.world, (-1.0, 0.0, 0.0), tip, (0.0, 0.0, 0.0)
    >>> length = np.hypot(1.0, 0.1)
    >>> bar = fx.LinearSpringDamper("bar", *ends, free_length=length, stiffness=1e3, damping=0.0)
    >>> _ = builder.add_force_element(bar)
    >>> path = fx.load_path(builder.build(), {"generalized_force": -0.5})
    >>> [float(point.values["generalized_force"].round(6)) for point in path.limit_points]
    [-0.191494, 0.191494]
    >>> path.stable[0], path.stable[len(path) // 2], path["slider.translation"][-1].round(4)
    (np.True_, np.False_, np.float64(-0.1329))
    """
    require_system(system, "Cannot follow a load path")
    attempt = f"Cannot follow a load path of '{system.label}'"
    start = start_context(system, context, attempt)
    plan = path_plan(start, along, attempt)
    wanted = several(signals)
    ports = [
        replace(place, alias=path_of(way))
        for place, way in zip(find_ports(system, wanted, "a signal"), wanted, strict=True)
    ]
    for option, value in (("branch", branch), ("max_points", max_points)):
        require(is_whole(value), value, f"{attempt} with this {option}", "a whole number")
    check_bounds(as_number(max_points, (), attempt), f"{attempt} with this max_points", lower=2.0)
    run = PathRun(start, plan, attempt, int(branch), int(max_points))
    try:
        run.go()
    except (Exception, KeyboardInterrupt) as error:
        if run.stops:
            error.result = _result(run, ports, "failed")  # type: ignore[union-attr]
        raise
    path = _result(run, ports, "completed")
    warn_of_misleading_limits(path._extremes(), f"The load path of '{system.label}'")
    return path


def _result(run: PathRun, signals: list[Place], outcome: str) -> LoadPath:
    """Return what a run has found."""
    names, special = run.equations.coordinates.names, []
    for index, stop in enumerate(run.stops):
        if stop.crossing is not None:
            amplitudes = stop.crossing.direction / np.max(np.abs(stop.crossing.direction))
            shape = {
                name: float(amplitude)
                for name, amplitude in zip(names, amplitudes, strict=True)
                if abs(amplitude) > 1e-9
            }
            values = run.plan.values_of(run.numbers[index][np.newaxis])
            at = {name: rows[0] for name, rows in values.items()}
            special.append(SpecialPoint(stop.kind, index, at, shape))
    return LoadPath(run, tuple(special), signals, outcome)

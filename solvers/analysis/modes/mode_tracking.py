"""Mode tracking: assigns the modes at one value of a parameter to those at the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Place, find_place, path_of
from flexure.diagrams.drawing.formats.new_figures import PlottedInPanels, new_figure
from flexure.diagrams.drawing.formats.style import labelled, style_of, tidy
from flexure.diagrams.interface.html import Shown, heading
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_numbers
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.equations.equations import find_varied
from flexure.solvers.analysis.modes.modes import MODE_COLUMNS, Mode, Modes, checked_number, modes
from flexure.solvers.analysis.modes.spectrum import Branch, ComplexArray
from flexure.solvers.analysis.operating_points.equilibria import equilibrium
from flexure.solvers.analysis.operating_points.parameter_continuation import follow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALIKE = 0.6  # resemblance of neighbors that is not looked at more closely
_LEAST = 0.1  # resemblance below which a mode ends
_HINT = 1e-3  # weight of equal frequencies where shapes do not tell
_HALVINGS = 5  # of an interval between two values, at most
_EQUAL = 1e-6  # relative distance of poles of which any combination of shapes is a mode
_TURNED = ("rigid", "oscillation", "decay", "growth")  # kinds with one shape for each pole
_ROWS = 20  # of a table in a notebook
_LISTED = 30  # tracks in a legend
_STROKE = "To go along a stroke, pass what load_path finds over it in place of a mapping"


class ModeTracks(Shown, PlottedInPanels):
    """Modes followed over values of a parameter.

    Their figure has natural frequencies and damping ratios over the parameter, a line for each
    track.

    Attributes
    ----------
    system : System
        Whose modes they are.
    values : dict
        What was varied: arrays with an entry for each of the K values, by path.
    modes : tuple of Modes
        The modes at each value, in the order of their frequencies there.
    numbers : ndarray of int, shape (K, M)
        For each value and each of the M tracks the number of the mode in ``modes``; -1 where there
        is none, since two oscillations became decays, or the like.

    See Also
    --------
    track_modes : Follow modes.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> tracks = fx.track_modes(builder.build(), {"spring.stiffness": [50.0, 200.0]})
    >>> (2.0 * np.pi * tracks.frequencies).round(4)
    array([[10.],
           [20.]])
    """

    def __init__(
        self,
        system: System,
        values: Mapping[str, FloatArray],
        modes: tuple[Modes, ...],
        numbers: npt.NDArray[np.intp],
    ) -> None:
        self.system = system
        self.values = dict(values)
        self.modes = modes
        self.numbers = numbers

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    def __iter__(self) -> Iterator[list[Mode | None]]:
        return (self[track] for track in range(len(self)))

    def __getitem__(self, track: int) -> list[Mode | None]:
        """Return the mode at each value that belongs to a track; None where there is none."""
        attempt = f"Cannot find a track of the modes of '{self.system.label}'"
        number = checked_number(track, len(self), "tracks", attempt)
        column = zip(self.modes, self.numbers[:, number], strict=True)
        return [found[int(k)] if k >= 0 else None for found, k in column]

    @property
    def frequencies(self) -> FloatArray:
        """The natural frequencies in Hz, shape (K, M); NaN where there is no mode."""
        return self._collected("frequency")

    @property
    def damping_ratios(self) -> FloatArray:
        """The damping ratios, shape (K, M); NaN where there is no mode, and for poles at zero."""
        return self._collected("damping_ratio")

    def _collected(self, figure: str) -> FloatArray:
        rows = [
            [getattr(found[int(k)], figure) if k >= 0 else np.nan for k in numbers]
            for found, numbers in zip(self.modes, self.numbers, strict=True)
        ]
        return np.array(rows, dtype=float).reshape(self.numbers.shape)

    def table(self) -> Table:
        """Return a table with one row for each value and track.

        In front of the columns of `Modes.table` are those of the parameters and of the track.
        """
        rows: list[tuple[Any, ...]] = []
        for k, (found, numbers) in enumerate(zip(self.modes, self.numbers, strict=True)):
            lines = [tuple(line.values()) for line in found.table()]
            given = [values[k] for values in self.values.values()]
            rows += [(*given, t, *lines[int(n)]) for t, n in enumerate(numbers) if n >= 0]
        return Table((*self.values, "track", *MODE_COLUMNS), rows)

    def _figure(self) -> Figure:
        figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        name, values = next(iter(self.values.items()))
        along = values.reshape(len(values), -1)
        single = along.shape[1] == 1
        grid = along[:, 0] if single else np.arange(len(along))
        for k, line in enumerate(np.transpose(self.frequencies)):
            style = style_of(k) | {"marker": "o", "markersize": 3.5}
            upper.plot(grid, line, label=str(k), **style)
            lower.plot(grid, self.damping_ratios[:, k], **style)
        upper.set_ylabel("natural frequency [Hz]")
        lower.set_ylabel("damping ratio")
        unit = find_place(self.system, name).handle.unit if single else ""
        lower.set_xlabel(labelled(name, unit) if single else "number of the value")
        for ax in (upper, lower):
            tidy(ax)
        upper.set_ylim(bottom=0.0)
        if not np.any(self.damping_ratios < 0.0):
            lower.set_ylim(bottom=0.0)
        if 1 < len(self) <= _LISTED:
            figure.legend(title="track", loc="outside right upper", frameon=False)
        figure.suptitle(self.system.label)
        return figure

    def _pieces(self) -> Iterator[str]:
        yield heading("ModeTracks", self.system.label, f"{len(self)} over {', '.join(self.values)}")
        yield self.table().to_html(_ROWS)

    def __repr__(self) -> str:
        over = ", ".join(self.values)
        return f"<ModeTracks of '{self.system.label}': {len(self)} over {over}>"


@runtime_checkable
class Equilibria(Protocol):
    """Equilibria one after the other, such as those of a `LoadPath`."""

    @property
    def values(self) -> Mapping[str, FloatArray]:
        """What is varied along them, by path."""

    def __len__(self) -> int: ...

    def context(self, index: int) -> Context:
        """Return a context that is at one of them."""


@in_one_thread
@answers_other_words
def track_modes(
    system: System,
    values: Mapping[Any, npt.ArrayLike] | Equilibria,
    *,
    context: Context | None = None,
) -> ModeTracks:
    """Follow the modes of a system over values of a parameter, or along a load path.

    Parameters
    ----------
    system : System
        A plant, or any other diagram or block with continuous states.
    values : mapping or LoadPath
        From parameters or free input ports, by handle or path, to arrays with one entry for each of
        K values, as for `sweep`. Several are varied together. Or equilibria over a load or a
        stroke, as `load_path` finds them.
    context : Context, optional
        All other values, and where to look for the first equilibrium; a root context, which is not
        changed. A default context when omitted. A load path has its own.

    Returns
    -------
    ModeTracks

    Raises
    ------
    UnknownNameError
        When there is no such parameter.
    ValueRefusedError
        When arrays differ in length, or a value is refused by what it is for.
    EvaluationError
        As for `equilibrium` and `modes`.

    See Also
    --------
    modes : The modes at one operating point.
    root_locus : Follow the poles of a closed loop.

    Notes
    -----
    At each value an equilibrium is found, from that at the value before; of a load path, whose
    forces on strokes stay what they are, its points are taken. Modes are matched by the
    modal assurance criterion: the resemblance of two modes is the trace of the product of the
    projectors on their invariant subspaces. Undamped, that is the square of the product of their
    shapes in the mass matrix. Pairs are chosen so that the sum of all is largest. So modes cross
    without a change of places, and an oscillation that becomes overdamped stays what it is. If a
    match is poor, intermediate values are evaluated. At a crossing any combination of two shapes is
    a mode; those that resemble the modes before are taken.

    Where two curves come close and turn away from each other, their modes exchange shapes. Fine
    values follow the curves; values that leave out all of it follow the shapes.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("pair", gravity=(0.0, 0.0, 0.0))
    >>> for name in ("a", "b"):
    ...     body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
    ...     rail = fx.PrismaticJoint(f"on_{name}", builder.world, body, (1, 0, 0))
    ...     spring = fx.JointSpring(f"at_{name}", builder.add_joint(rail), stiffness=4.0)
    ...     _ = builder.add_force_element(spring)
    >>> tracks = fx.track_modes(builder.build(), {"at_a.stiffness": [1.0, 4.0, 9.0]})
    >>> (2.0 * np.pi * tracks.frequencies).round(6)
    array([[1., 2.],
           [2., 2.],
           [3., 2.]])
    """
    require_system(system, "Cannot track the modes")
    attempt = f"Cannot track the modes of '{system.label}'"
    if isinstance(values, Equilibria):
        path = values
        require(len(path), values, attempt, "one equilibrium or more")

        def found_at(_: Context, k: int, share: float) -> Modes:
            """Return the modes at an equilibrium or, where share is 1, at the next."""
            return modes(system, path.context(k + int(share)))

        found, numbers = _followed(found_at, path.context(0), len(path), 0)
        return ModeTracks(system, path.values, found, numbers)

    start = start_context(system, context, attempt)
    columns = varied_columns(start, values, attempt)
    contexts = [with_values(start, columns, k) for k in range(len(columns[0][1]))]

    def settled(near: Context, k: int, share: float) -> Modes:
        """Return the modes at a share of the way from value k to the next, beginning nearby."""
        moved = near.clone()
        for place, rows in columns:
            row = rows[k] if share == 0.0 else (1.0 - share) * rows[k] + share * rows[k + 1]
            place.write(moved, row)
        return modes(system, equilibrium(system, moved).context)

    first = contexts[0] if contexts else start
    found, numbers = _followed(settled, first, len(contexts), _HALVINGS)
    paths = map(path_of, values)
    tracked = {path: rows for path, (_, rows) in zip(paths, columns, strict=True)}
    return ModeTracks(system, tracked, found, numbers)


def _followed(
    modes_at: Callable[..., Modes], first: Context, count: int, halvings: int
) -> tuple[tuple[Modes, ...], npt.NDArray[np.intp]]:
    """Return the modes at each of some values, and for each track their numbers there."""
    found = [modes_at(first, 0, 0.0)] if count else []
    tracks: list[Branch | None] = [branch for each in found for branch in each.branches]
    numbers = [list(range(len(tracks)))]
    for k in range(count - 1):
        arrive = _arrivals(lambda near, share, k=k: modes_at(near, k, share))
        _, there = follow(arrive, _Stop(found[-1], tracks, numbers[-1]), 0.0, 1.0, halvings)[-1]
        new = sorted(set(range(len(there.modes))) - set(there.numbers))
        tracks = [*there.tracks, *(there.modes.branches[number] for number in new)]
        numbers.append([*there.numbers, *new])
        found.append(there.modes)
    table = np.full((count, len(tracks)), -1, dtype=np.intp)
    for at, row in zip(table, numbers, strict=False):
        at[: len(row)] = row
    return tuple(found), table


def varied_columns(
    context: Context, values: Mapping[Any, npt.ArrayLike], attempt: str
) -> list[tuple[Place, FloatArray]]:
    """Return the places of what is varied, each with its values."""
    wanted = "a mapping from paths to arrays, such as {'spring.stiffness': [1.0, 2.0]}"
    given: object = values
    require(isinstance(given, Mapping) and given, values, attempt, wanted)
    columns = []
    for way, array in values.items():
        place = find_varied(context.system, way, attempt, _STROKE)
        rows = as_numbers(array, f"{attempt} over '{place.path}'")
        shape = place.shape or ()
        if rows.ndim == 1 and shape == (1,):
            rows = rows[:, np.newaxis]
        fits = rows.ndim > 0 and rows.shape[1:] == shape
        require(fits, array, f"{attempt} over '{place.path}'", f"values of shape {shape}")
        columns.append((place, rows))
    lengths = {place.path: len(rows) for place, rows in columns}
    if len(set(lengths.values())) > 1:
        raise ValueRefusedError(
            attempt,
            expected="arrays of one length",
            found=", ".join(f"{n} values of '{path}'" for path, n in lengths.items()),
        )
    return columns


def with_values(context: Context, columns: list[tuple[Place, FloatArray]], index: int) -> Context:
    """Return a context with the values of one index; what does not fit is refused."""
    twin = context.clone()
    for place, rows in columns:
        place.write(twin, rows[index])
    return twin


@dataclass(frozen=True, eq=False)
class _Stop:
    """The modes at a share of the way, and for each track its branch and its number there."""

    modes: Modes
    tracks: list[Branch | None]
    numbers: list[int]


def _arrivals(settled: Callable[..., Modes]) -> Callable[[_Stop, float], tuple[_Stop, bool]]:
    """Return what `follow` asks for: the tracks at a share of the way, from those at another."""
    # The shapes of equal poles there are chosen to resemble those of the tracks.
    looked_at: dict[float, Modes] = {}

    def arrive(here: _Stop, share: float) -> tuple[_Stop, bool]:
        if share not in looked_at:
            looked_at[share] = settled(here.modes.context, share)
        after = looked_at[share]
        branches = _turned(here.tracks, after.branches)
        numbers, alike = _matched(here.tracks, branches)
        turned = Modes(after.context, after.coordinates, tuple(branches), after.how)
        tracks = [branches[k] if k >= 0 else None for k in numbers]
        return _Stop(turned, tracks, numbers), alike >= _ALIKE

    return arrive


def _matched(tracks: list[Branch | None], branches: list[Branch]) -> tuple[list[int], float]:
    """Return the number of the branch for each track, -1 for none, and the poorest resemblance."""
    from scipy.optimize import linear_sum_assignment

    kept = [track for track, branch in enumerate(tracks) if branch is not None]
    known = [branch for branch in tracks if branch is not None]
    shape = len(known), len(branches)
    pairs = [(track, each) for track in known for each in branches]
    alike = np.clip([track.resemblance(each) for track, each in pairs], 0.0, 1.0).reshape(shape)
    near = np.array([_nearness(*pair) for pair in pairs]).reshape(shape)
    rows, columns = linear_sum_assignment(alike + _HINT * near, maximize=True)
    numbers = [-1] * len(tracks)
    for row, column in zip(rows, columns, strict=True):
        if alike[row, column] >= _LEAST:
            numbers[kept[row]] = int(column)
    return numbers, float(np.min(alike[rows, columns], initial=1.0))


def _nearness(track: Branch, branch: Branch) -> float:
    """Return 1 for equal frequencies, and less for others."""
    low, high = sorted((track.speed, branch.speed))
    return low / high if high > 0.0 else 1.0


def _turned(tracks: list[Branch | None], branches: Sequence[Branch]) -> list[Branch]:
    """Return branches; those of equal poles are turned in their space until they resemble tracks.

    With the products G of left eigenvectors of tracks and right ones of branches, the unitary
    matrix R that makes the trace of G R largest is that of the polar decomposition of Gᴴ.
    """
    kept = [branch for branch in tracks if branch is not None]
    result = list(branches)
    for equal in _equal(branches):
        size = len(branches[equal[0]].poles)
        fitting = [branch for branch in kept if len(branch.poles) == size]
        if len(fitting) < len(equal):
            continue
        shapes = np.stack([branches[k].vectors[:, 0] for k in equal], axis=1)
        G = np.stack([branch.duals[0] for branch in fitting]) @ shapes
        closest = np.sort(np.argsort(-np.linalg.norm(G, axis=1), kind="stable")[: len(equal)])
        left, _, right = np.linalg.svd(G[closest])
        R = (left @ right).conj().T
        for place, column in zip(equal, R.T, strict=True):
            result[place] = _combined([branches[k] for k in equal], column, branches[place])
    return result


def _combined(branches: Sequence[Branch], weights: ComplexArray, other: Branch) -> Branch:
    """Return a combination of branches of equal poles by a column of a unitary matrix."""
    factors = [weights, weights.conj()][: len(other.poles)]
    vectors = [
        sum(w * branch.vectors[:, k] for w, branch in zip(factor, branches, strict=True))
        for k, factor in enumerate(factors)
    ]
    duals = [
        sum(w.conj() * branch.duals[k] for w, branch in zip(factor, branches, strict=True))
        for k, factor in enumerate(factors)
    ]
    return replace(other, vectors=np.stack(vectors, axis=1), duals=np.stack(duals))


def _equal(branches: Sequence[Branch]) -> list[list[int]]:
    """Return the numbers of branches of one kind whose poles are equal, two or more together."""
    groups: list[list[int]] = []
    for k, branch in enumerate(branches):
        last = branches[groups[-1][-1]] if groups else branch
        apart = np.max(np.abs(np.subtract(last.poles[0], branch.poles[0])))
        if groups and last.kind == branch.kind and apart <= _EQUAL * branch.speed:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [group for group in groups if len(group) > 1 and branches[group[0]].kind in _TURNED]

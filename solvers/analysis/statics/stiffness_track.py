"""Stiffness over a stroke or another path of equilibria, and parasitic motions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import rotation_vector_from_rotation
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.checks.arguments import flag, one_of, require
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import find_place, path_of
from flexure.diagrams.drawing.formats.new_figures import PlottedInPanels, new_figure, saved
from flexure.diagrams.drawing.formats.style import GREY, labelled, name_axis, style_of, tidy
from flexure.diagrams.interface.html import Shown, heading
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Entries
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.modes.mode_tracking import Equilibria, varied_columns, with_values
from flexure.solvers.analysis.modes.modes import checked_number
from flexure.solvers.analysis.statics.stiffness import (
    TWIST,
    TWIST_UNITS,
    Stiffness,
    find_frame,
    stiffness,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS = 20  # of a table in a notebook
_DECADES = 1.5  # of stiffnesses, beyond which their axis is logarithmic
_PLAIN = (-3, 5)  # powers of ten of numbers that are written as they are
_SMALL = 1e-9  # of the stroke, which is no motion
_KINDS = ((slice(0, 3), "rotation"), (slice(3, 6), "translation"))
_NOISE = 1e-13  # of the largest motion, which a table shows as none


class StiffnessTrack(Entries[Stiffness], Shown, PlottedInPanels):
    """The stiffness of a mechanism at a frame along a path of equilibria.

    Its figure has the stiffness against motions in each direction over the path. Full lines are
    those of a load that acts alone. Dashed ones are those of a frame that is kept from moving in
    the five other directions, where there are such.

    Attributes
    ----------
    system : System
        Whose stiffness it is.
    values : dict
        What was varied: arrays with an entry for each of the K equilibria, by path.
    stiffnesses : tuple of Stiffness
        Those of each equilibrium.
    motions : ndarray, shape (K, 6)
        How the frame has moved since the equilibrium ``since``, seen from ``measured_in`` and
        expressed along the axes there: rotation vector in rad, then translation of the point in m.

    See Also
    --------
    track_stiffness : Compute it.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    >>> rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0)))
    >>> _ = builder.add_force_element(fx.JointSpring("spring", rail, stiffness=200.0))
    >>> stage = builder.build()
    >>> track = fx.track_stiffness(stage, "body", {"spring.stiffness": [100.0, 200.0]})
    >>> track.matrices[:, 3, 3].round(6)
    array([100., 200.])
    """

    def __init__(
        self,
        system: System,
        values: Mapping[str, FloatArray],
        found: Sequence[Stiffness],
        since: int,
    ) -> None:
        self.system = system
        self.values = dict(values)
        self.stiffnesses = self._entries = tuple(found)
        self.motions = np.array([_moved(found[since], each) for each in found])

    @property
    def compliances(self) -> FloatArray:
        """The compliances, shape (K, 6, 6); see `Stiffness.compliance`."""
        return np.array([each.compliance for each in self])

    @property
    def matrices(self) -> FloatArray:
        """The stiffnesses, shape (K, 6, 6); see `Stiffness.matrix`."""
        return np.array([each.matrix for each in self])

    @property
    def centers_of_compliance(self) -> FloatArray:
        """Positions of the centers of compliance in the world, shape (K, 3), in m.

        If there is a line of centers, its points next to the frame.
        """
        return np.array([e.pose.p + e.pose.R @ e.center_of_compliance.point for e in self])

    def stroke(self) -> str:
        """Return the name of the direction with the largest motion of the frame, such as ``"x"``.

        It is a translation, unless the frame does nothing but turn.
        """
        reach = np.max(np.abs(self.motions), axis=0)
        first = 3 if np.any(reach[3:] > 0.0) else 0
        return TWIST[first + int(np.argmax(reach[first : first + 3]))]

    def motion(self, direction: str) -> FloatArray:
        """Return how far the frame has moved in a direction, shape (K,): a column of ``motions``.

        Parameters
        ----------
        direction : str
            ``"rx"``, ``"ry"`` or ``"rz"`` for angles, ``"x"``, ``"y"`` or ``"z"``.
        """
        attempt = f"Cannot find a motion along the stiffness of '{self.system.label}'"
        column: FloatArray = self.motions[
            :, TWIST.index(one_of(direction, TWIST, "direction", attempt))
        ]
        return column

    def parasitic(self, stroke: str | None = None) -> Table:
        """Return a table of the stroke and of the motions in the five other directions.

        Parameters
        ----------
        stroke : str, optional
            The direction of the stroke, as for `motion`; that of `stroke` when omitted.
        """
        along = self.stroke() if stroke is None else stroke
        first = self.motion(along)
        others = [name for name in TWIST if name != along]
        names = [f"{n} [{TWIST_UNITS[TWIST.index(n)]}]" for n in (along, *others)]
        columns = np.array([first, *(self.motion(name) for name in others)])
        noise = _NOISE * np.max(np.abs(self.motions), initial=0.0)
        return Table(names, np.where(np.abs(columns) > noise, columns, 0.0).T.tolist())

    def diagonals(self, *, held: bool) -> FloatArray:
        """Return the stiffness against a motion in each direction, shape (K, 6).

        Parameters
        ----------
        held : bool
            Whether the frame is kept from moving in the five other directions, as on the diagonal
            of `matrices`; else one load acts alone, and the reciprocals of the diagonal of
            `compliances` are returned.
        """
        flag(held, "held", f"Cannot take stiffnesses of '{self.system.label}'")
        if held:
            return np.diagonal(self.matrices, axis1=1, axis2=2)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.diagonal(self.compliances, axis1=1, axis2=2))

    def table(self, *, held: bool = False) -> Table:
        """Return a table with a row for each equilibrium.

        Its columns are what was varied, and the stiffness against motions in each direction, named
        ``krx`` to ``kz``, in N m/rad and N/m.

        Parameters
        ----------
        held : bool
            Whether the frame is kept from moving in the five other directions, as for `diagonals`.
        """
        diagonals = self.diagonals(held=held)
        given = [list(values) for values in self.values.values()]
        names = (*self.values, *(f"k{name}" for name in TWIST))
        return Table(
            names, [(*row, *d) for *row, d in zip(*given, diagonals.tolist(), strict=True)]
        )

    def _figure(self) -> Figure:
        figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
        name, grid, unit = self._over()
        alone, held = self.diagonals(held=False), self._held()
        for ax, (part, kind), load in zip(axes, _KINDS, ("N m/rad", "N/m"), strict=True):
            shown = []
            for k in range(*part.indices(6)):
                for line, dashes in ((alone[:, k], "-"), (held[:, k], "--")):
                    if np.isfinite(line).any():
                        shown.append(line)
                        label = f"k{TWIST[k]}" if dashes == "-" else None
                        ax.plot(grid, line, label=label, **_style(TWIST[k]) | {"linestyle": dashes})
            ax.set_ylabel(f"stiffness of {kind} [{load}]")
            if kind == "translation" and np.isfinite(held).any():
                for dashes, meaning in (("-", "alone"), ("--", "others held")):
                    ax.plot([], [], color=GREY, linestyle=dashes, label=meaning)
            _scale(ax, np.ravel(shown))
            _finish(ax, len(shown))
        name_axis(axes[1].xaxis, name, unit, most=60)
        figure.suptitle(f"{self.system.label}: {self.stiffnesses[0].frame.name}")
        return figure

    def plot_parasitic(
        self, stroke: str | None = None, *, path: str | Path | None = None
    ) -> Figure:
        """Plot the motions in five directions over that in the sixth.

        Parameters
        ----------
        stroke : str, optional
            The direction of the stroke, as for `parasitic`.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        along = self.stroke() if stroke is None else stroke
        grid = self.motion(along)
        least = _SMALL * float(np.max(np.abs(grid), initial=0.0))
        figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
        for ax, (part, kind) in zip(axes, _KINDS, strict=True):
            names = [name for name in TWIST[part] if name != along]
            for name in names:
                line = self.motion(name)
                ax.plot(grid, np.where(np.abs(line) > least, line, 0.0), label=name, **_style(name))
            ax.set_ylabel(f"{kind} [{TWIST_UNITS[part][0]}]")
            _finish(ax, len(names))
        axes[1].set_xlabel(f"stroke {labelled(along, TWIST_UNITS[TWIST.index(along)])}")
        figure.suptitle(f"{self.system.label}: {self.stiffnesses[0].frame.name}")
        return saved(figure, path)

    def _over(self) -> tuple[str, FloatArray, str]:
        """Return the name, the numbers and the unit of what is varied first."""
        name, values = next(iter(self.values.items()))
        along = values.reshape(len(values), -1)
        varied = np.flatnonzero(np.ptp(along, axis=0))
        if len(varied) != 1 or name == "number":
            return "number of the equilibrium", np.arange(len(along), dtype=float), ""
        suffix = f"[{varied[0]}]" if along.shape[1] > 1 else ""
        return f"{name}{suffix}", along[:, varied[0]], find_place(self.system, name).handle.unit

    def _held(self) -> FloatArray:
        """Return the stiffness of a frame held in all other directions, where there is one."""
        try:
            return self.diagonals(held=True)
        except EvaluationError:
            return np.full((len(self), 6), np.nan)

    def _pieces(self) -> Iterator[str]:
        frame = self.stiffnesses[0].frame.name
        yield heading("StiffnessTrack", frame, f"{len(self)} over {', '.join(self.values)}")
        yield self.table().to_html(_ROWS)

    def __repr__(self) -> str:
        over, frame = ", ".join(self.values), self.stiffnesses[0].frame.name
        return f"<StiffnessTrack of '{self.system.label}' at '{frame}': {len(self)} over {over}>"


@in_one_thread
@answers_other_words
def track_stiffness(
    system: System,
    frame: FrameLike | str,
    along: Mapping[Any, npt.ArrayLike] | Equilibria,
    *,
    context: Context | None = None,
    p_FP: npt.ArrayLike = (0.0, 0.0, 0.0),
    measured_in: FrameLike | str | None = None,
    expressed_in: FrameLike | str | None = None,
    since: int = 0,
) -> StiffnessTrack:
    """Follow the stiffness at a frame over a stroke, a load or a parameter.

    Parameters
    ----------
    system, frame, p_FP, measured_in, expressed_in
        As for `stiffness`. Axes that are those of a frame move with it.
    along : mapping or LoadPath
        For inputs and parameters, by handle or path, arrays with one entry for each of K values,
        which are varied together. Or equilibria over a load or a stroke, as `load_path` finds them.
    context : Context, optional
        All other values, and where to look for the first equilibrium; a root context, which is not
        changed. A default context when omitted. A load path has its own.
    since : int
        Number of the equilibrium from which motions of the frame are measured; it may count from
        the end.

    Returns
    -------
    StiffnessTrack

    Raises
    ------
    UnknownNameError
        When there is no such frame, input or parameter.
    ValueRefusedError
        When there are no values, arrays differ in length, or a value is refused.
    EvaluationError
        As for `stiffness`.

    See Also
    --------
    stiffness : Stiffness at one operating point.
    load_path : The path of equilibria.

    Notes
    -----
    Each search starts from the equilibrium before, so values must be close enough to find the next
    one. `load_path` chooses its steps itself, and continues where the load turns back. The forces
    that hold its strokes stay constant: the stiffness is that of the mechanism with free strokes.

    Examples
    --------
    A spring that is pushed aside gets stiffness against that from its tension:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("string", gravity=(0.0, 0.0, 0.0))
    >>> bead = builder.add_body("bead", fx.SpatialInertia.point_mass(0.1))
    >>> slot = builder.add_joint(fx.PrismaticJoint("slot", builder.world, bead, (0, 0, 1)))
    >>> wall = builder.add_frame("wall", builder.world, (1.0, 0.0, 0.0))
    >>> string = fx.LinearSpringDamper(
    ...     "spring", wall, (0, 0, 0), bead, (0, 0, 0), free_length=0.5, stiffness=8.0, damping=0.0
    ... )
    >>> _ = builder.add_force_element(string)
    >>> track = fx.track_stiffness(builder.build(), bead, {"spring.free_length": [0.5, 0.75]})
    >>> track.matrices[:, 5, 5]
    array([4., 2.])
    """
    require_system(system, "Cannot track a stiffness")
    attempt = f"Cannot track a stiffness of '{system.label}'"
    find_frame(system, frame, attempt)

    def checked(number: int, count: int) -> int:
        return checked_number(number, count, "equilibria", f"{attempt} since one of them")

    def at(place: Context) -> Stiffness:
        options = {"p_FP": p_FP, "measured_in": measured_in, "expressed_in": expressed_in}
        return stiffness(system, frame, context=place, **options)  # type: ignore[arg-type]

    if isinstance(along, Equilibria):
        require(len(along), along, attempt, "one equilibrium or more")
        each = [at(along.context(k)) for k in range(len(along))]
        return StiffnessTrack(system, along.values, each, checked(since, len(each)))
    start = start_context(system, context, attempt)
    columns = varied_columns(start, along, attempt)
    require(len(columns[0][1]), along, attempt, "one value or more")
    found: list[Stiffness] = []
    for k in range(len(columns[0][1])):
        near = found[-1].context if found else start
        found.append(at(with_values(near, columns, k)))
    values = {path_of(way): rows for way, (_, rows) in zip(along, columns, strict=True)}
    return StiffnessTrack(system, values, found, checked(since, len(found)))


def _moved(first: Stiffness, now: Stiffness) -> FloatArray:
    """Return how the frame has moved, seen from where its motion is measured."""
    turns, points = [], []
    for each in (first, now):
        X_WM = each.measured_in.pose(each.context)
        turns.append(each.frame.pose(each.context, each.measured_in).R)
        points.append(X_WM.R.T @ (each.pose.p - X_WM.p))
    axes = first.measured_in.pose(first.context).R.T @ first.pose.R
    turned = rotation_vector_from_rotation(turns[1] @ turns[0].T)
    return np.concatenate([axes.T @ turned, axes.T @ (points[1] - points[0])])


def _style(name: str) -> dict[str, Any]:
    """Return how a direction is drawn: in the color of its axis."""
    return style_of(TWIST.index(name) % 3)


def _scale(ax: Axes, numbers: FloatArray) -> None:
    """Take a logarithmic axis for positive numbers of different size."""
    sizes = numbers[np.isfinite(numbers) & (numbers != 0.0)]
    if sizes.size and np.all(sizes > 0.0) and np.log10(sizes.max() / sizes.min()) > _DECADES:
        ax.set_yscale("log")


def _finish(ax: Axes, count: int) -> None:
    tidy(ax)
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", style="sci", scilimits=_PLAIN)
    if count:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)

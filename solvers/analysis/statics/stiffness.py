"""Stiffness and compliance of a mechanism at one of its frames, in all six directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody import Plant
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.trees.component_names import SPATIAL_FORCE
from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.html import heading, note
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_finite, as_number, check_bounds, freeze
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.forces_at_rest.misleading_results import (
    warn_of_hidden_motions,
    warn_of_misleading_limits,
)
from flexure.solvers.analysis.forces_at_rest.static_coordinates import plants_in, trees_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.analysis.statics.nearby_equilibrium import Flexibility, motion_in_words, settle
from flexure.solvers.analysis.statics.spatial_compliance import (
    Center,
    Principal,
    RotationAxis,
    center_of,
    compliance_of,
    coordinate_axes,
    principal_directions,
    regular_part,
    rotation_axis,
    stiffness_of,
    twist_there,
)
from flexure.solvers.results.mechanisms.pictures import only_plant

#: The components of twists and of loads.
TWIST = ("rx", "ry", "rz", "x", "y", "z")
LOAD = SPATIAL_FORCE
TWIST_UNITS = ("rad", "rad", "rad", "m", "m", "m")
LOAD_UNITS = ("N m", "N m", "N m", "N", "N", "N")
_LEAST = 1e-9  # of the largest motion of a frame, below which it does not move
_NOISE = 1e-11  # of what an entry can be beside those of the diagonal, shown as zero


class Directions(NamedTuple):
    """Directions in which a frame has no stiffness, or no compliance."""

    free: FloatArray  # twists that need no load, in columns, shape (6, k)
    rigid: FloatArray  # loads that cause no twist, shape (6, l)


class Stiffness(Answer):
    """Stiffness and compliance of a mechanism at one of its frames.

    Small loads F = (t, f) on the frame and its small twists X = (θ, p), the rotational part first,
    are related by ``X = C F`` and ``F = K X``.

    Attributes
    ----------
    context : Context
        The equilibrium; a copy.
    frame : Frame
        The frame that was asked for.
    measured_in : Frame
        From where its motion is seen, and what supports the load.
    pose : RigidTransform
        Pose in the world of the point that the six components belong to, and of their axes.
    directions : Directions
        Free twists and rigid loads.
    free_motions : tuple of dict
        The motions of the mechanism that nothing resists: amplitudes of its coordinates by path.
    how : str
        Whether derivatives are exact or central differences, and why.

    See Also
    --------
    stiffness : Compute it.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    >>> rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, body, (1, 0, 0)))
    >>> _ = builder.add_force_element(fx.JointSpring("spring", rail, stiffness=200.0))
    >>> stage = builder.build()
    >>> found = fx.stiffness(stage, "body")
    >>> found.compliance[3, 3].round(6)
    np.float64(0.005)
    """

    def __init__(
        self,
        context: Context,
        frames: tuple[Frame, Frame],
        pose: RigidTransform,
        motions: FloatArray,
        directions: Directions,
        length: float,
        free_motions: tuple[dict[str, float], ...],
        how: str,
    ) -> None:
        self.context = context
        self.frame, self.measured_in = frames
        self.pose = pose
        self.directions = directions
        self.free_motions = free_motions
        self.how = how
        self._motions = motions
        self._length = length
        self._regular = regular_part(motions, *directions, length)

    # Matrices --------------------------------------------------------------------------------

    @cached_property
    def compliance(self) -> FloatArray:
        """C, shape (6, 6): twists by loads, in rad/(N m), rad/N, m/(N m) and m/N.

        Where the frame moves freely along one of the axes, or turns about one, that entry of the
        diagonal is infinite; the others are for loads that do not drive that motion.

        Raises
        ------
        EvaluationError
            When it moves freely in a direction between the axes, so that all entries are infinite.
        """
        found = compliance_of(self._regular)
        free = coordinate_axes(self.directions.free, self._length)
        if free is None:
            raise EvaluationError(
                f"Cannot find the compliance of '{self.frame.name}' along these axes",
                expected="free motions along the axes or about them, or none",
                found=f"a free motion: {self._free_in_words()}",
                remedy="The attribute matrix is finite; or take axes along that motion",
            )
        found[free, free] = np.inf
        freeze(found)
        return found

    @cached_property
    def matrix(self) -> FloatArray:
        """K, shape (6, 6): loads by twists, in N m/rad, N m/m, N/rad and N/m.

        Free motions need no load. Where joints do not let the frame move along one of the axes, or
        turn about one, as in plane mechanisms, that entry of the diagonal is infinite.

        Raises
        ------
        EvaluationError
            When joints hold it in a direction between the axes, so that all entries are infinite.
        """
        found = stiffness_of(self._regular)
        rigid = coordinate_axes(self.directions.rigid, 1.0 / self._length)
        if rigid is None:
            loads = " and ".join(_combination(each, LOAD) for each in self.directions.rigid.T)
            raise EvaluationError(
                f"Cannot find the stiffness of '{self.frame.name}' along these axes",
                expected="joints that hold it along the axes or about them, or not at all",
                found=f"joints that take up {loads} without a motion",
                remedy="The attribute compliance is finite; or take other axes",
            )
        found[rigid, rigid] = np.inf
        freeze(found)
        return found

    # Along and about what --------------------------------------------------------------------

    @property
    def rotation(self) -> Principal:
        """Principal axes of the angles under couples; they are equal at all points of the body."""
        return principal_directions(self.compliance[:3, :3])

    @property
    def translation(self) -> Principal:
        """Principal axes of the translations under forces at this point, which is free to turn."""
        return principal_directions(self.compliance[3:, 3:])

    def rotation_axis(self, couple: npt.ArrayLike) -> RotationAxis:
        """Return the line about which the body turns under a couple.

        Parameters
        ----------
        couple : array_like, shape (3,)
            The couple along the axes, in N m or of any size, such as (0, 0, 1).

        Raises
        ------
        EvaluationError
            When it does not turn, or turns freely.
        """
        attempt = f"Cannot find an axis of rotation of '{self.frame.name}'"
        numbers = as_finite(couple, (3,), attempt)
        work = self.directions.free.T[:, :3] @ numbers
        found = None if np.any(np.abs(work) > _LEAST) else rotation_axis(self._motions, numbers)
        if found is None:
            raise EvaluationError(
                attempt,
                expected="a couple that turns it, and is resisted",
                found=f"{numbers.tolist()}"
                + (f", with free motions: {self._free_in_words()}" if work.size else ""),
            )
        return found

    @property
    def center_of_compliance(self) -> Center:
        """The point at which the coupling C_rt of angles and forces is symmetric.

        Where it vanishes there, as for remote centers, forces through the center do not turn the
        body, and couples turn it about the center. In a plane mechanism it is any point of a line.

        Raises
        ------
        EvaluationError
            When the body does not turn at all, or something moves freely.
        """
        return self._center("compliance", self._motions, "forces and angles")

    @property
    def center_of_stiffness(self) -> Center:
        """The point at which the coupling K_rt of couples and translations is symmetric.

        Where it vanishes there, this is the center of compliance, too.

        Raises
        ------
        EvaluationError
            As for `center_of_compliance`, and when joints hold the body.
        """
        swapped = self.matrix[np.ix_([3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])]
        return self._center("stiffness", swapped, "couples and translations")

    def _center(self, what: str, matrix: FloatArray, coupled: str) -> Center:
        attempt = f"Cannot find the center of {what} of '{self.frame.name}'"
        free = f"a free motion: {self._free_in_words()}" * bool(self.directions.free.size)
        if free or not np.isfinite(matrix).all():
            raise EvaluationError(
                attempt,
                expected="a body that is held elastically in all directions",
                found=free or "joints that hold it in some of them",
            )
        found = center_of(matrix)
        if found is None:
            raise EvaluationError(attempt, expected=f"{coupled} that are related", found="zeros")
        return found

    # Elsewhere -------------------------------------------------------------------------------

    def at(self, place: FrameLike | str | npt.ArrayLike) -> Stiffness:
        """Return the stiffness of the same body at another point, or along other axes.

        Parameters
        ----------
        place : Frame, Body, str or array_like, shape (3,)
            A frame: at the point of the body where the origin of that frame is now, along its axes.
            Or the position of a point from this one, along these axes, in m; the axes stay.
        """
        attempt = f"Cannot find the stiffness of '{self.frame.name}' elsewhere"
        if isinstance(place, (Body, Frame, str)):
            there = find_frame(self.context.system, place, attempt).pose(self.context)
            r, R = self.pose.R.T @ (there.p - self.pose.p), self.pose.R.T @ there.R
        else:
            r, R = as_number(place, (3,), attempt), np.eye(3)
            check_bounds(r, attempt)
            there = RigidTransform(self.pose.R, self.pose.p + self.pose.R @ r)
        X = twist_there(r, R)
        free, rigid = self.directions
        return Stiffness(
            self.context,
            (self.frame, self.measured_in),
            there,
            X @ self._motions @ X.T,
            Directions(X @ free, np.asarray(np.linalg.solve(X.T, rigid))),
            self._length,
            self.free_motions,
            self.how,
        )

    # Texts -----------------------------------------------------------------------------------

    def table(self, what: str = "stiffness") -> Table:
        """Return a matrix as a table, with names and units of its rows and columns.

        Parameters
        ----------
        what : str
            ``"stiffness"`` or ``"compliance"``.
        """
        attempt = f"Cannot make a table of the stiffness of '{self.frame.name}'"
        stiff = one_of(what, ("stiffness", "compliance"), "what", attempt) == "stiffness"
        loads = [f"{name} [{unit}]" for name, unit in zip(LOAD, LOAD_UNITS, strict=True)]
        twists = [f"{name} [{unit}]" for name, unit in zip(TWIST, TWIST_UNITS, strict=True)]
        values = self.matrix if stiff else self.compliance
        rows, columns = (loads, twists) if stiff else (twists, loads)
        lines = zip(rows, without_noise(values).tolist(), strict=True)
        return Table((what, *columns), [(name, *line) for name, line in lines])

    def _free_in_words(self) -> str:
        return ", and ".join(
            motion_in_words(np.array(list(motion.values())), list(motion))
            for motion in self.free_motions
        )

    def _pieces(self) -> Iterator[str]:
        yield heading("Stiffness", self.frame.name, self.how)
        if self.free_motions:
            yield note(f"free to move: {self._free_in_words()}")
        for what in ("stiffness", "compliance"):
            try:
                yield self.table(what).to_html()
            except EvaluationError as error:
                yield note(error)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        free = f", free to move: {self._free_in_words()}" if self.free_motions else ""
        return f"<Stiffness of '{self.context.system.label}' at '{self.frame.name}'{free}>"


@in_one_thread
@answers_other_words
def stiffness(
    system: System,
    frame: FrameLike | str,
    *,
    context: Context | None = None,
    p_FP: npt.ArrayLike = (0.0, 0.0, 0.0),
    measured_in: FrameLike | str | None = None,
    expressed_in: FrameLike | str | None = None,
) -> Stiffness:
    """Find the stiffness and the compliance of a mechanism at one of its frames.

    Parameters
    ----------
    system : System
        A plant, or a diagram with one.
    frame : Frame, Body or str
        The frame F at which loads act and motions are measured.
    context : Context, optional
        Operating point, a root context; it is not changed. If it is not at rest, the nearest
        equilibrium is used. A default context when omitted.
    p_FP : array_like, shape (3,)
        Position of the point P to which loads and motions belong, from Fo, expressed in F, in m.
    measured_in : Frame, Body or str, optional
        The frame from which the motion is seen, and which supports the load; the world when
        omitted.
    expressed_in : Frame, Body or str, optional
        The frame whose axes the components are along; F itself when omitted.

    Returns
    -------
    Stiffness

    Raises
    ------
    UnknownNameError
        When there is no such frame.
    EvaluationError
        When there is no equilibrium near the context, something is not finite, or a sampled block
        follows the motion.

    See Also
    --------
    track_stiffness : Stiffness over a stroke or load.
    modes : Natural frequencies.
    load_path : Follow large deflections.

    Notes
    -----
    The loads F displace the unknowns of the mechanism by ``K⁻¹ Jᵀ F``, with its exact stiffness K
    and the Jacobian J of the frame::

        C = J K⁻¹ Jᵀ

    This holds at an equilibrium under any forces, and includes their changes: gravity, forces on
    inputs (which stay constant), and controllers with their steady state. If nothing resists some
    motion, K is singular. Loads that do no work on it still have a compliance; see
    `Stiffness.compliance` for the others, and ``Stiffness.free_motions``.

    At an unstable equilibrium, the stiffness in some direction is negative.

    Examples
    --------
    Two springs in a row, of which each has half the compliance:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("row", gravity=(0.0, 0.0, 0.0))
    >>> ends = [builder.world]
    >>> for name in ("a", "b"):
    ...     body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
    ...     rail = fx.PrismaticJoint(f"{name}_rail", ends[-1], body, (1, 0, 0))
    ...     spring = fx.JointSpring(f"{name}_spring", builder.add_joint(rail), stiffness=200.0)
    ...     _ = builder.add_force_element(spring)
    ...     ends.append(body)
    >>> found = fx.stiffness(builder.build(), "b")
    >>> found.compliance[3, 3], found.matrix[3, 3]
    (np.float64(0.01), np.float64(100.0))
    """
    require_system(system, "Cannot find a stiffness")
    attempt = f"Cannot find a stiffness of '{system.label}'"
    F = find_frame(system, frame, attempt)
    world = plant_of(F).world
    M = find_frame(system, world if measured_in is None else measured_in, attempt)
    E = find_frame(system, F if expressed_in is None else expressed_in, attempt)
    at = as_finite(p_FP, (3,), attempt)
    equations = StaticEquations(start_context(system, context, attempt), attempt=attempt)
    _, flexible = settle(equations, None, attempt)
    warn_of_misleading_limits([equations.context], f"The stiffness of '{system.label}'")
    warn_of_hidden_motions(equations.context, f"Entries of the stiffness of '{system.label}' are")
    return stiffness_at(equations, flexible, (F, M, E), at)


def stiffness_at(
    equations: StaticEquations,
    flexible: Flexibility,
    frames: tuple[Frame, Frame, Frame],
    at: FloatArray,
) -> Stiffness:
    """Return the stiffness where equations are at rest, at a point of a frame, for two others."""
    F, M, E = frames
    context, coordinates = equations.context.clone(), equations.coordinates
    names, X_WF = coordinates.names, F.pose(context)
    J = np.zeros((6, len(names)))
    every = _jacobian(context, F, at, M, E)
    J[:, : coordinates.num_displacements] = every[:, coordinates.free]
    length = _length(J)
    scale = np.array([length] * 3 + [1.0] * 3)[:, np.newaxis]
    least = _LEAST * float(np.max(np.abs(scale * J), initial=0.0))
    moved, _ = _split(scale * (J @ flexible.free), least)
    _, held = _split(scale * (J @ flexible.allowed), least)
    return Stiffness(
        context,
        (F, M),
        RigidTransform(E.pose(context).R, X_WF.p + X_WF.R @ at),
        J @ flexible.motions @ J.T,
        Directions(moved / scale, held * scale),
        length,
        tuple(_named(motion, names) for motion in flexible.free.T),
        equations.how,
    )


def _named(motion: FloatArray, names: list[str]) -> dict[str, float]:
    """Return the amplitudes of what moves."""
    least = _LEAST * np.max(np.abs(motion))
    return {name: float(a) for name, a in zip(names, motion, strict=True) if abs(a) > least}


def find_frame(system: System, frame: FrameLike | str, attempt: str) -> Frame:
    """Return a frame that is given, or has a name in the only plant of a system."""
    if isinstance(frame, str):
        return only_plant(system, "plant.frame('name') instead of a name").frame(frame)
    found = as_frame(frame, attempt)
    plant = plant_of(found)
    if not any(plant is each for each in plants_in(system)):
        raise UnknownNameError(
            f"{attempt} at '{found.name}'",
            expected=f"a frame of a plant in '{system.label}'",
            found=f"one of a plant '{plant.label}' that is not in it",
            remedy=f"Pass its name, or take it from the plant, as in plant.frame({found.name!r})",
        )
    return found


def plant_of(frame: Frame) -> Plant:
    """Return the plant of a frame, which is refused before it is in one."""
    tree, _ = frame.place()
    plant = tree.parent_plant
    assert isinstance(plant, Plant)
    return plant


def without_noise(matrix: FloatArray) -> FloatArray:
    """Return a matrix with zeros for what is only rounding beside the entries of the diagonal."""
    size = np.sqrt(np.abs(np.where(np.isfinite(np.diag(matrix)), np.diag(matrix), 0.0)))
    noise = np.isfinite(matrix) & (np.abs(matrix) <= _NOISE * np.outer(size, size))
    return np.where(noise, 0.0, matrix)


def _jacobian(context: Context, F: Frame, p_FP: FloatArray, M: Frame, E: Frame) -> FloatArray:
    """Return the Jacobian of a frame by the velocities of all trees, end to end."""
    plant, parts = plant_of(F), []
    for _, tree in trees_of(context):
        if tree is plant.tree:
            parts.append(plant.calc_jacobian(context, F, p_FP, M, E))
        else:
            parts.append(np.zeros((6, tree.topology.num_velocities)))
    return np.hstack(parts)


def _length(J: FloatArray) -> float:
    """Return the length by which angles are like translations in the motions of a frame."""
    turned, moved = (np.max(np.abs(part), initial=0.0) for part in (J[:3], J[3:]))
    return float(moved / turned) if moved > 0.0 and turned > 0.0 else 1.0


def _split(columns: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal directions that columns span, and those that are left over."""
    left, sizes, _ = np.linalg.svd(columns)
    rank = int(np.sum(sizes > least))
    return left[:, :rank], left[:, rank:]


def _combination(direction: FloatArray, names: tuple[str, ...]) -> str:
    """Return a direction as a text such as ``0.6 x + 0.8 y``."""
    scaled = direction / np.max(np.abs(direction))
    parts = [f"{a:.3g} {name}" for a, name in zip(scaled, names, strict=True) if abs(a) > 1e-6]
    return " + ".join(parts).replace("+ -", "- ")

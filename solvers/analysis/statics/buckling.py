"""Buckling: load factors at which an equilibrium loses its stiffness in some direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks import Plant
from flexure.blocks.multibody import ForceElement
from flexure.diagrams.checks.arguments import count_of, flag, require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, quoted, warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.html import heading
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer, Entries
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_finite
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.equations.equations import Variable, find_variables
from flexure.solvers.analysis.forces_at_rest.misleading_results import warn_of_misleading_limits
from flexure.solvers.analysis.forces_at_rest.static_coordinates import StaticCoordinates, size_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.analysis.modes.modes import checked_number
from flexure.solvers.analysis.statics.critical_states import Critical, CriticalStates, Estimate
from flexure.solvers.analysis.statics.nearby_equilibrium import motion_in_words, settle

if TYPE_CHECKING:
    from flexure.solvers.analysis.modes import mode_plots
    from flexure.solvers.analysis.modes.mode_plots import Shape
else:
    mode_plots = Deferred("flexure.solvers.analysis.modes.mode_plots")

_EQUAL = 1e-6  # relative distance of factors that are one
_SAME = 0.999  # resemblance of shapes that are one


@dataclass(frozen=True, eq=False)
class CriticalLoad:
    """A load at which an equilibrium loses its stiffness.

    Attributes
    ----------
    factor : float
        By how much of the given load: refined at the deformed state, if that was asked for. NaN
        where the path of equilibria ends before.
    linear_factor : float
        Where the stiffness vanishes that changes linearly with the load.
    kind : str
        ``"bifurcation"``, where other equilibria branch off; ``"limit"``, where the load has an
        extreme and the mechanism snaps through; ``"linear"``, where it is not refined;
        ``"beyond"``, where it is not reached.
    shape : dict of float
        Amplitude of each joint coordinate, by path; the largest one is 1.
    context : Context
        The critical state; for a linear factor, that without the load.

    See Also
    --------
    buckling : Find the critical loads.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, 0.5))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 1, 0)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> column = builder.build()
    >>> critical = fx.buckling(column, {column.gravity: (0.0, 0.0, -1.0)})[0]
    >>> round(critical.factor, 6)
    np.float64(50.0)
    """

    factor: float
    linear_factor: float
    kind: str
    shape: dict[str, float]
    context: Context

    def __repr__(self) -> str:
        shape = motion_in_words(np.array(list(self.shape.values())), list(self.shape))
        return f"<CriticalLoad: {self.factor:.6g}, {self.kind}, {shape}>"


class Buckling(Entries[CriticalLoad], Answer):
    """Critical factors of a load: a sequence of `CriticalLoad`, made by `buckling`.

    Factors of the smallest magnitude come first.

    Attributes
    ----------
    context : Context
        The equilibrium without the load.
    loads : dict
        The load that the factors belong to, by path.
    how : str
        Whether derivatives are exact or central differences, and why.

    See Also
    --------
    buckling : Find the critical loads.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, 0.5))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 1, 0)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> column = builder.build()
    >>> found = fx.buckling(column, {column.gravity: (0.0, 0.0, -1.0)})
    >>> found.factors.round(6)
    array([50.])
    """

    def __init__(
        self,
        context: Context,
        loads: dict[str, FloatArray],
        found: tuple[CriticalLoad, ...],
        how: str,
    ) -> None:
        self.context = context
        self.loads = loads
        self.how = how
        self._entries = found

    def __getitem__(self, index: int) -> CriticalLoad:
        attempt = f"Cannot find a critical load of '{self.context.system.label}'"
        return self._entries[checked_number(index, len(self), "critical loads", attempt)]

    @property
    def factors(self) -> FloatArray:
        """The critical factors; NaN where they are beyond the end of the path."""
        return np.array([each.factor for each in self])

    @property
    def linear_factors(self) -> FloatArray:
        """The factors for a stiffness that changes linearly with the load."""
        return np.array([each.linear_factor for each in self])

    def table(self) -> Table:
        """Return a table: ``factor``, ``linear_factor``, ``kind``, and in words what ``moves``."""
        rows = [
            (
                None if np.isnan(each.factor) else each.factor,
                each.linear_factor,
                each.kind,
                motion_in_words(np.array(list(each.shape.values())), list(each.shape)),
            )
            for each in self
        ]
        return Table(("factor", "linear_factor", "kind", "moves"), rows)

    plot = mode_plots.plot_shape
    animate = mode_plots.animate_shape

    def _shape_of(self, index: int, plant: Plant | None, verb: str = "show") -> Shape:
        attempt = f"Cannot {verb} a buckling shape of '{self.context.system.label}'"
        return buckling_shape(self[index], plant, attempt)

    def _pieces(self) -> Iterator[str]:
        yield heading("Buckling", self.context.system.label, self.how)
        yield self.table().to_html()

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        factors = ", ".join(f"{each.factor:.6g}" for each in self) or "none"
        return f"<Buckling of '{self.context.system.label}': factors {factors}>"


@in_one_thread
@answers_other_words
def buckling(
    system: System,
    loads: Mapping[Any, npt.ArrayLike],
    *,
    context: Context | None = None,
    num_factors: int = 4,
    refine: bool = True,
) -> Buckling:
    """Find the load factors at which an equilibrium loses its stiffness.

    Parameters
    ----------
    system : System
        A plant, or a diagram with one.
    loads : mapping
        The load: for free inputs or parameters, by handle or path, the increment of their values in
        the context at a factor of 1.
    context : Context, optional
        All other values, a root context; it is not changed. The loads there are a constant
        prestress. A default context when omitted.
    num_factors : int
        Number of factors: those of the smallest magnitude, positive or negative.
    refine : bool
        Whether to follow the equilibrium to each critical state; else factors are linear.

    Returns
    -------
    Buckling

    Raises
    ------
    UnknownNameError
        When there is no such input or parameter.
    ValueRefusedError
        When the load is zero, or of another shape.
    EvaluationError
        When there is no equilibrium near the context, or something moves freely there.

    Warns
    -----
    UserWarning
        When forces have no potential, so that flutter may occur first; when there are flexible
        bodies of matrices or without modes, which do not buckle in themselves; or when a flexure is
        bent farther than its single elements represent.

    See Also
    --------
    load_path : Follow the deflection beyond the critical load.
    check_limits : Stresses and other limits.

    Notes
    -----
    With the stiffness K(λ) at the equilibrium under the load λ, the function finds the λ for which
    K is singular. It starts from those of ``K(0) + λ K'(0)``, in which K' includes the change of
    stiffness by the deformation under the load. It then repeats this at the deformed state until
    the state is the critical one. The factors thus hold for mechanisms that bend before they
    buckle, and include limit points, at which shallow arches snap through. The first loss of
    stiffness on either side is also looked for without an estimate of its shape. `load_path`
    follows what comes after.

    Under follower forces K is not symmetric. Flutter may then occur first, which this function does
    not detect but warns of; `load_path` judges both.

    Examples
    --------
    A rigid column of 2 m on a torsion spring of 30 N m, which falls over under 15 N:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("column", gravity=(0.0, 0.0, 0.0))
    >>> rod = builder.add_body("rod", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 2.0))
    >>> foot = builder.add_joint(fx.RevoluteJoint("foot", builder.world, rod, axis=(0, 1, 0)))
    >>> _ = builder.add_force_element(fx.JointSpring("spring", foot, stiffness=30.0))
    >>> column = builder.build()
    >>> found = fx.buckling(column, {column.gravity: (0.0, 0.0, -1.0)})
    >>> found
    <Buckling of 'column': factors 15>
    """
    require_system(system, "Cannot find critical loads")
    attempt = f"Cannot find critical loads of '{system.label}'"
    start = start_context(system, context, attempt)
    variables, steps = _loads(start, loads, attempt)
    count_of(num_factors, "num_factors", attempt, minimum=1)
    flag(refine, "refine", attempt)
    equations = StaticEquations(start, variables, attempt=attempt)
    names = equations.coordinates.names
    _, flexible = settle(equations, None, attempt)
    if flexible.free.size:
        told = ", and ".join(motion_in_words(each, names) for each in flexible.free.T)
        raise EvaluationError(
            attempt,
            expected="a mechanism whose stiffness is not singular without the load",
            found=f"a free motion: {told}",
            remedy="Hold it, or lock a joint",
        )
    rest, step = equations.context.clone(), np.concatenate(steps)
    unit = float(np.max(np.abs(step)))  # so that no load is too large for squares
    states = CriticalStates(equations, step / unit, size_of(rest))
    estimates = states.estimates()
    found = []
    for estimate in estimates[:num_factors]:
        critical = states.refined(estimate) or states.beyond(estimate)
        found.append((estimate, critical if refine else states.linear(estimate)))
    for side in (1.0, -1.0) if refine else ():
        ahead = [each for each in estimates if each.factor * side > 0.0]
        first = states.first(ahead[0].factor) if ahead else None
        if first is not None:
            found.append((states.nearest(first, estimates), first))
    loads_found = [_told(*each, unit, equations) for each in found]
    kept = tuple(_different(loads_found)[:num_factors])
    if not states.has_potential:
        warn(
            f"The forces on '{system.label}' have no potential, as under loads that follow the "
            "motion. Critical factors are those without stiffness (divergence); flutter may begin "
            "below them, or where there are none. fx.load_path(...).stable sees both"
        )
    elements = [leaf.system for leaf in rest.leaves() if isinstance(leaf.system, ForceElement)]
    linear = [each.path for each in elements if not each.stiffens]
    if linear:
        warn(
            f"The buckling of '{system.label}' is that of its rigid and divided parts: each "
            "flexible body of matrices is linear, and does not buckle in itself: "
            f"{quoted(linear)}. Make it by from_mesh or from_plate, or divide slender ones"
        )
    bare = [e.path for e in elements if e.stiffens and len(e.coupled) > 1 and not e.joint_ends]
    if bare:
        warn(
            f"The buckling of '{system.label}' leaves out that of flexible bodies between their "
            f"interfaces, since these have no modes: {quoted(bare)}. Make them with modes=2 or more"
        )
    warn_of_misleading_limits((each.context for each in kept), f"The buckling of '{system.label}'")
    given = {v.place.path: step.reshape(v.shape) for v, step in zip(variables, steps, strict=True)}
    return Buckling(rest, given, kept, equations.how)


def _loads(
    context: Context, loads: Mapping[Any, npt.ArrayLike], attempt: str
) -> tuple[list[Variable], list[FloatArray]]:
    """Return inputs and parameters, and what is added to each."""
    given: object = loads
    wanted = "a mapping from paths to loads, such as {'tip.force': [0.0, 0.0, -1.0]}"
    require(isinstance(given, Mapping) and given, loads, attempt, wanted)
    variables, steps = [], []
    for way, load in loads.items():
        (variable,) = find_variables(context, [way], attempt)
        about = f"{attempt} under '{variable.place.path}'"
        number = as_finite(load, variable.shape, about)
        variables.append(variable)
        steps.append(np.ravel(number).astype(float))
    find_variables(context, list(loads), attempt)  # which refuses repetitions
    if not any(np.any(step) for step in steps):
        raise ValueRefusedError(attempt, expected="a load", found="only zeros")
    return variables, steps


def _told(
    estimate: Estimate, critical: Critical, unit: float, equations: StaticEquations
) -> CriticalLoad:
    """Return a critical load with names and a context, for a load in some unit."""
    shape = critical.shape / critical.shape[np.argmax(np.abs(critical.shape))]
    named = dict(zip(equations.coordinates.names, map(float, shape), strict=True))
    equations.set_variables(critical.variables)
    equations.move_to(critical.x)
    context = equations.context.clone()
    factors = critical.factor / unit, estimate.factor / unit
    return CriticalLoad(*factors, critical.kind, named, context)


def _different(found: list[CriticalLoad]) -> list[CriticalLoad]:
    """Return critical loads in the order of their size, each state and shape once."""
    kept: list[CriticalLoad] = []
    for each in sorted(found, key=_size):
        if not any(_same(each, other) for other in kept):
            kept.append(each)
    return kept


def _size(critical: CriticalLoad) -> float:
    return np.inf if np.isnan(critical.factor) else abs(critical.factor)


def _same(one: CriticalLoad, other: CriticalLoad) -> bool:
    a, b = (np.array(list(critical.shape.values())) for critical in (one, other))
    near = abs(one.factor - other.factor) <= _EQUAL * abs(other.factor)
    return bool(near and abs(a @ b) > _SAME * np.linalg.norm(a) * np.linalg.norm(b))


def buckling_shape(critical: CriticalLoad, plant: Plant | None, attempt: str) -> Shape:
    """Return the shape in which a mechanism loses its stiffness."""
    from flexure.solvers.analysis.modes.mode_plots import Shape
    from flexure.solvers.results.mechanisms.pictures import chosen_plant

    context = critical.context
    plant = chosen_plant(plant, context.system, "plot(0, plant)")
    coordinates = StaticCoordinates(context)
    motion = np.array([critical.shape[name] for name in coordinates.names])
    x = context.continuous_state

    def move(part: FloatArray) -> Context:
        twin = context.clone()
        twin.continuous_state = coordinates.moved(x, part)
        return twin

    factor = critical.linear_factor if np.isnan(critical.factor) else critical.factor
    caption = f"{critical.kind}, factor {factor:.4g}"
    return Shape(plant, context, motion, move, caption, attempt)

"""The bushing as it is measured: coupled, preloaded, nonlinear, with relaxation and friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.bushings.bushing_law import GeneralBushingLaw
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch, MaxwellBranch
from flexure.blocks.forces.coefficients.bushing_coefficients import (
    DIRECTIONS,
    passivity_problem,
    six_by_six,
)
from flexure.blocks.forces.on_joints.force_table import ForceTable, declare_table
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import items_of, mapping, require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, suggestion
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import Array, FloatArray, as_number
from flexure.diagrams.values.events import Witness
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import DiscreteState

#: A branch as it is given: stiffness and relaxation time.
Branch = tuple[npt.ArrayLike, float]


class GeneralBushing(HalfwayElement):
    """A bushing between frames A and C, with constants as they are measured.

    With the rotation vector θ from A to C, the position x of Co from Ao expressed in the frame B
    halfway between A and C, and ξ = (θ, x)::

        V = ½ ξ · K ξ - p · ξ + Σ ∫₀^ξₖ Tₖ dξₖ + Σ Vⱼ(ξ, zⱼ)
        (τ, f) = -(∂V/∂ξ + D ξ̇)          torques, and force on C, expressed in B

    Stiffness K and damping D are matrices, which couple directions; p is the load on C where
    nothing is deformed; tables Tₖ add loads along single directions, with straight lines between
    their points. Inside are branches with states zⱼ of their own::

        Maxwell:   load = Kⱼ (ξ - z),     ż = (ξ - z)/Tⱼ
        friction:  load = F (ξ - z)/h but at most F,  ż as `FrictionBranch` has it

    Branches of Maxwell, springs in series with dampers, make a material that is stiffer the faster
    it moves, and relaxes: with K, they are a Prony series. Friction in series makes it
    softer the farther it moves: from rest on, the load is F ξ/(h + ξ).

    Moments and forces on the bodies are those with the power τ · θ̇ + f · ẋ, with exact rates:
    springs are conservative, and dampers and friction only dissipate; friction with memory does so
    over each cycle, not at each instant. The law `GeneralBushingLaw`
    has all equations, and `HalfwayLaw` those of the forces.

    Inputs and outputs are those of `LinearBushing`. ``stored_energy`` holds that of springs in
    branches.

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C; both may be on one body, and either on the world.
    stiffness : array_like, shape (6, 6) or (6,)
        Symmetric K, not negative, or its diagonal: rotations about x, y and z of B first, then
        translations, in N m/rad, N m/m and N/m. Zero along a direction whose table is all.
    damping : array_like, shape (6, 6) or (6,), optional
        Symmetric D, not negative, or its diagonal, in N m s/rad, N s and N s/m; none when omitted.
    preload : array_like, shape (6,), optional
        Moment in N m and force in N on C where nothing is deformed; none when omitted.
    tables : mapping of str to (deformations, loads), optional
        For ``"rx"``, ``"ry"``, ``"rz"``, ``"x"``, ``"y"`` or ``"z"``: strictly increasing
        deformations in rad or m, and loads in N m or N that resist them and never fall. The
        outermost lines go on. The loads are a parameter, such as ``loads_z``, in ``loads``.
    branches : sequence of (stiffness, relaxation time)
        The stiffness is like K, and the time > 0 in s. The parameters of the first one are
        ``branch_stiffness_1``, with rows for the directions in which it is not zero, and
        ``relaxation_time_1``; they are listed in ``branch_stiffness`` and ``relaxation_times``.
    friction : mapping of str to (load, half_deformation), optional
        For directions as above: the greatest load F >= 0 in N m or N, and the deformation h > 0 in
        rad or m at which half of it is there. They are parameters such as ``friction_load_z`` and
        ``friction_deformation_z``, in ``friction_loads`` and ``friction_deformations``.
    friction_memory : sequence of str, optional
        Directions in which friction remembers where it turned, as the model of Berg. Their loads at
        the last turn, over F, are discrete values such as ``turn_z``, which an event keeps whenever
        the rate of the deformation changes its sign.

    Raises
    ------
    DeclarationError
        When a frame is missing, or a table is no table.
    UnknownNameError
        When there is no such direction.
    ValueRefusedError
        When a matrix is not symmetric or has a negative eigenvalue, loads of a table fall, or a
        number is out of range, also in a context.
    EvaluationError
        When springs are evaluated at a rotation of more than 170 degrees.

    See Also
    --------
    LinearBushing : A bushing between the frames A and C.

    Notes
    -----
    A damping matrix that is not symmetric is refused, too: its skew part does no work, but mounts
    without rotors or magnets have none, and it is noise in measurements.

    In new contexts all states are zero, as if the bodies had come to where they are at once:
    ``relax`` lets branches rest there. ``fx.equilibrium`` and what statics computes relax branches
    of Maxwell, and leave friction where it has slipped.

    The friction has one smooth equation, that of P. R. Dahl with the exponent 2, and the curve from
    rest on of M. Berg, A non-linear rubber spring model for rail vehicle dynamics analysis, Vehicle
    System Dynamics 30 (1998) 197-212. It is not Berg's after a reversal: that model remembers where
    it was and starts again with the stiffness F/h, while this one starts with (1 + a)² F/h from a
    load a F. ``friction_memory`` makes it Berg's, by events. Between the amplitudes ±X, what has no
    memory dissipates more: 1.4 times as much at X = 0.1 h and at 10 h, and 2.4 times at 0.9 h. Its
    loads at the ends are greater by up to 0.22 F, at 1.7 h. So a fit must be made of the one kind
    that is simulated.

    Examples
    --------
    A mount that is stiff at high frequencies, with a preload along z:

    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> mount = GeneralBushing(
    ...     "mount",
    ...     Body("frame"),
    ...     Body("engine"),
    ...     stiffness=[50.0, 50.0, 80.0, 4e4, 4e4, 9e4],
    ...     preload=[0.0, 0.0, 0.0, 0.0, 0.0, 900.0],
    ...     branches=[([0.0, 0.0, 0.0, 0.0, 0.0, 3e4], 0.01)],
    ...     friction={"x": (200.0, 1e-4)},
    ... )
    >>> mount.continuous_state.element_names
    ('stretch_1_z', 'slip_x')
    >>> context = mount.create_default_context()
    >>> mount.relaxation_times[0].set(context, 0.02)
    >>> mount.friction_loads["x"].set(context, 150.0)
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        stiffness: npt.ArrayLike,
        damping: npt.ArrayLike | None = None,
        preload: npt.ArrayLike | None = None,
        tables: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
        branches: Sequence[Branch] = (),
        friction: Mapping[str, tuple[float, float]] | None = None,
        friction_memory: Sequence[str] = (),
    ) -> None:
        attempt = f"Cannot make bushing '{name}'"
        series = [_branch(each, attempt) for each in items_of(branches, "branches", attempt)]
        given_tables = _by_direction(tables, "tables", "deformations and loads", attempt)
        slipping = _by_direction(friction, "friction", "a load and a deformation", attempt)
        remembering = _remembering(friction_memory, slipping, attempt)
        inner = [
            *(f"stretch_{j}_{DIRECTIONS[k]}" for j, each in enumerate(series, 1) for k in each[0]),
            *(f"slip_{direction}" for direction in slipping),
        ]
        states = {"name": "z", "z": len(inner), "element_names": inner, "doc": "in rad and m"}
        memory = {f"turn_{direction}": [0.0] for direction in remembering}
        super().__init__(name, frame_a, frame_c, states=states if inner else None, memory=memory)
        none = np.zeros(6)
        self.stiffness = self._declare_matrix("stiffness", six_by_six(stiffness, attempt))
        self.damping = self._declare_matrix(
            "damping", six_by_six(none if damping is None else damping, attempt)
        )
        self.preload = self.declare_numeric_parameter(
            "preload",
            as_number(none if preload is None else preload, (6,), attempt),
            unit="N m, N",
            doc="on C, where nothing is deformed",
        )
        tabulated = {
            direction: declare_table(
                self,
                *table,
                unit=_unit(direction),
                name=f"loads_{direction}",
                problem=_falling,
                distribution=partial(_rising, len(np.atleast_1d(table[1]))),
            )
            for direction, table in given_tables.items()
        }
        self._deformations = {direction: points for direction, (points, _) in tabulated.items()}
        self.loads = {direction: loads for direction, (_, loads) in tabulated.items()}
        self._directions = [directions for directions, _, _ in series]
        self.branch_stiffness = [
            self._declare_matrix(f"branch_stiffness_{j}", matrix)
            for j, (_, matrix, _) in enumerate(series, 1)
        ]
        self.relaxation_times = [
            self._declare_scale(f"relaxation_time_{j}", time, "s")
            for j, (_, _, time) in enumerate(series, 1)
        ]
        self.friction_loads = {
            direction: self.declare_numeric_parameter(
                f"friction_load_{direction}",
                as_number(load, (), attempt),
                unit=_unit(direction),
                lower=0.0,
                doc="greatest load of friction",
            )
            for direction, (load, _) in slipping.items()
        }
        self.friction_deformations = {
            direction: self._declare_scale(
                f"friction_deformation_{direction}", half, "rad" if direction[0] == "r" else "m"
            )
            for direction, (_, half) in slipping.items()
        }
        turns = {group.name.removeprefix("turn_"): group for group in self.discrete_states}
        self._turns = {direction: turns.get(direction) for direction in slipping}
        self._declare_outputs()
        for direction, group in turns.items():
            k = DIRECTIONS.index(direction)
            turning = Witness(partial(self._rate_along, k), "either")
            self.declare_discrete_update(partial(self._turned, k, group), turning)

    # Declarations ----------------------------------------------------------------------------

    def _declare_matrix(self, name: str, matrix: FloatArray) -> NumericParameter:
        """Declare a matrix that has to be passive in contexts, too."""
        return self.declare_numeric_parameter(
            name,
            matrix,
            problem=passivity_problem,
            sparse=True,
            distribution=partial(_near, matrix),
            doc="symmetric, not negative, rotations first",
        )

    def _declare_scale(self, name: str, value: float, unit: str) -> NumericParameter:
        """Declare a number above zero."""
        number = as_number(value, (), f"Cannot declare parameter '{self.label}.{name}'")
        return self.declare_numeric_parameter(
            name, number, unit=unit, lower=0.0, exclusive=True, distribution=partial(_about, number)
        )

    def _rate_along(self, k: int, context: Any) -> Any:
        """Return the rate of the deformation along a direction."""
        rates, now = self._rates(context), self._deformation(context)
        rate = rates.angles[k] if k < 3 else rates.work_rate[k - 3]
        law = self.kinematics(context)
        return scalars.refuse_where(law.is_near_jump(now), rate, lambda: law._near_jump(now))

    def _turned(self, k: int, group: DiscreteState, context: Any) -> dict[Any, Array]:
        """Return the load over F along a direction, as that of the last turn."""
        now = self._deformation(context)
        measure = scalars.array([now.angles[k] if k < 3 else now.position[k - 3]])
        slipping = self.law(context).branches[len(self._directions) :]
        here = slipping[list(self._turns).index(DIRECTIONS[k])]
        assert isinstance(here, FrictionBranch)  # these are behind those of Maxwell
        return {group: np.clip(here.fraction(measure), -1.0, 1.0)}

    # Equations -------------------------------------------------------------------------------

    def kinematics(self, context: Any) -> GeneralBushingLaw:
        """Return the law without what is inside."""
        none = np.zeros((6, 6))
        return GeneralBushingLaw(none, none, np.zeros(6), label=self.label)

    def law(self, context: Any) -> GeneralBushingLaw:
        """Return the law with the constants of a context, and with what is inside."""
        state = self.continuous_state
        z = np.zeros(0) if state is None else state(context)
        branches: list[MaxwellBranch | FrictionBranch] = []
        first = 0
        for directions, stiffness, time in zip(
            self._directions, self.branch_stiffness, self.relaxation_times, strict=True
        ):
            last = first + len(directions)
            stretch = z[first:last]
            branches.append(MaxwellBranch(directions, stiffness(context), time(context), stretch))
            first = last
        for direction, load in self.friction_loads.items():
            half, slip = self.friction_deformations[direction](context), z[first : first + 1]
            k = DIRECTIONS.index(direction)
            memory = self._turns[direction]
            turn = None if memory is None else memory(context)
            branches.append(FrictionBranch((k,), load(context), half, slip, turn))
            first += 1
        tables = [
            (DIRECTIONS.index(each), ForceTable.continued(points, self.loads[each](context)))
            for each, points in self._deformations.items()
        ]
        return GeneralBushingLaw(
            self.stiffness(context),
            self.damping(context),
            self.preload(context),
            tables,
            branches,
            label=self.label,
        )

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return how fast dampers and friction inside give way, in rad/s and m/s."""
        law = self.law(context)
        if not law.branches:
            return np.zeros(0)
        return np.concatenate(law.inner_rates(self._deformation(context), self._rates(context)))

    def relax(self, context: Context) -> None:
        """Let branches and friction rest, without load, where the bodies are in a context.

        Parameters
        ----------
        context : Context
            A context of the bushing, or of a diagram around it; its states change.
        """
        if self.continuous_state is None:
            return
        measures = np.concatenate([self.angles.eval(context), self.position.eval(context)])
        for each in self.discrete_states:
            each.set(context, [0.0])
        chosen = [k for directions in self._directions for k in directions]
        chosen += [DIRECTIONS.index(direction) for direction in self.friction_loads]
        self.continuous_state.set(context, measures[chosen])


def _branch(given: Any, attempt: str) -> tuple[tuple[int, ...], FloatArray, float]:
    """Return the directions of a branch, its stiffness along them, and its relaxation time."""
    here = f"{attempt} with a branch"
    stiffness, time = _pair(given, "a stiffness and a relaxation time", here)
    matrix = six_by_six(stiffness, here)
    directions = np.flatnonzero(np.any(matrix != 0.0, axis=0))
    if not len(directions):
        raise ValueRefusedError(here, expected="a stiffness that is not zero", found="only zeros")
    return tuple(map(int, directions)), matrix[np.ix_(directions, directions)], time


def _remembering(given: Sequence[str], slipping: Mapping[str, Any], attempt: str) -> list[Any]:
    """Return the directions in which friction remembers where it turned."""
    named = items_of(given, "directions", attempt)
    for name in named:
        if not isinstance(name, str) or name not in slipping:
            here = f"{attempt} with friction_memory for {name!r}"
            raise UnknownNameError(here, remedy=suggestion(str(name), slipping))
    return list(named)


def _by_direction(
    given: Mapping[str, Any] | None, what: str, pair: str, attempt: str
) -> dict[str, tuple[Any, Any]]:
    """Return pairs for the directions that are given, in their order."""
    named = mapping({} if given is None else given, what, attempt)
    for name in named:
        if name not in DIRECTIONS:
            here = f"{attempt} with {what} for {name!r}"
            raise UnknownNameError(here, remedy=suggestion(str(name), DIRECTIONS))
    return {
        each: _pair(named[each], pair, f"{attempt} with {what} for '{each}'")
        for each in DIRECTIONS
        if each in named
    }


def _pair(given: Any, expected: str, attempt: str) -> tuple[Any, Any]:
    """Return two things that are given together."""
    items = items_of(given, expected, attempt)
    require(len(items) == 2, given, attempt, expected)
    return items[0], items[1]


def _unit(direction: str) -> str:
    """Return the unit of a load along a direction."""
    return "N m" if direction[0] == "r" else "N"


def _falling(loads: FloatArray) -> str | None:
    """Say where loads of a table fall."""
    steps = np.diff(loads)
    if np.all(steps >= 0.0):
        return None
    k = int(np.argmin(steps))
    return (
        f"{loads[k + 1]:.6g} after {loads[k]:.6g}, which would push on as it is deformed. Give"
        " loads that never fall; a spring that snaps through is a TabulatedSpring on a joint"
    )


def _near(matrix: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a passive matrix: the given one in other strengths of its directions, and a bit more."""
    count = len(matrix)
    scale, more = np.exp(0.5 * rng.standard_normal(count)), rng.standard_normal((count, count))
    drawn: FloatArray = matrix * np.outer(scale, scale) + 0.1 * more @ more.T
    return drawn


def _about(number: Array, rng: np.random.Generator) -> Array:
    """Draw a number above zero."""
    return number * np.exp(0.5 * rng.standard_normal())


def _rising(count: int, rng: np.random.Generator) -> FloatArray:
    """Draw loads of a table."""
    drawn: FloatArray = np.sort(rng.standard_normal(count))
    return drawn

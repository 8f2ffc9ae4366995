"""Changes of the active constraints: impacts, contacts that open, friction that breaks away.

Two updates of a tree do that. `switched` runs where a witness function crosses zero, and lets a
velocity that has just passed through zero rest. `settled` runs before every motion, again and again
until nothing changes. In each round it lets coordinates strike their stops or, when none does, it
changes the first mode out of all that do not fit: a contact that would have to pull opens, one that
is pressed together closes, what sticks with too great a force slips, and what is at rest and would
slip backwards sticks. Such a choice of the first one comes to an end (K. G. Murty, Note on a
Bard-type scheme for solving the complementarity problem, Opsearch 11, 1974).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.multibody.constrained_dynamics.constrained_motion import UpheldEquations
from flexure.blocks.multibody.constrained_dynamics.contact_friction import Blow, refuse_unless, rub
from flexure.blocks.multibody.constraints.constraint import ConstrainedTree, driven_power
from flexure.blocks.multibody.constraints.sticking_constraint import StickingConstraint
from flexure.blocks.multibody.constraints.switched_constraint import (
    TOUCHING,
    Row,
    Scale,
    SwitchedConstraint,
    UnilateralConstraint,
    rests,
    touches,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.events import Settling, Witness

_TOGETHER = 1e-9  # how far from the limit contacts strike with one that does, as a part of the size
_MISSED = 0.02  # part of a change of velocity at a stop; with constraints that agree, it is 0
_MOST_PIVOTS = 6  # to find which of several stops push in an impact; the next round does the rest
_Change = Callable[[ConstrainedTree, Any], Mapping[Any, Array]]


def declare_mode_changes(tree: ConstrainedTree) -> None:
    """Declare the events of the constraints of a tree that switch, if there are any."""
    switching = [each for each in tree.constraints if isinstance(each, SwitchedConstraint)]
    for constraint in switching:
        for witness in constraint.witnesses():
            handler = _Update(tree, constraint.name, switched)
            tree.declare_unrestricted_update(handler, Witness(witness, "falling"))
    strikes = any(isinstance(each, UnilateralConstraint) for each in switching)
    if strikes and any(each.does_work for each in tree.constraints):
        tree.input_impacts = tree.declare_discrete_state(
            "input_impacts", [0.0], doc="what inputs have taken away in impacts, in J"
        )
    if switching:
        tree.declare_unrestricted_update(_Update(tree, "modes", settled), Settling())


class _Update:
    """An update of a tree, named after the constraint or the modes that it changes."""

    def __init__(self, tree: ConstrainedTree, name: str, calc: _Change) -> None:
        self._tree, self._calc = tree, calc
        self.__name__ = name

    def __call__(self, context: Any) -> Mapping[Any, Array]:
        return self._calc(self._tree, context)


class _Values:
    """Positions and velocities of a tree that are replaced one by one."""

    def __init__(self, tree: ConstrainedTree, context: Any) -> None:
        self._tree = tree
        x = tree.state(context)
        self._x = [x[k] for k in range(len(x))]

    def set_rate(self, constraint: SwitchedConstraint, row: Row, where: Any, value: Any) -> None:
        """Replace a velocity where a condition holds, if the equation is one of a coordinate."""
        if constraint.joint is not None:
            self._set(self._tree.velocities_in_state(constraint.joint).start + row.k, where, value)

    def set_position(
        self, constraint: SwitchedConstraint, row: Row, where: Any, value: Any
    ) -> None:
        """Replace a position where a condition holds, likewise."""
        if constraint.joint is not None:
            self._set(self._tree.positions_of(constraint.joint).start + row.k, where, value)

    def rate(self, constraint: StickingConstraint, row: Row) -> Any:
        """Return a velocity as it is now."""
        return self._x[self._tree.velocities_in_state(constraint.joint).start + row.k]

    def add_to_rates(self, where: Any, added: Array) -> None:
        """Add to all velocities where a condition holds."""
        first = len(self._x) - len(added)
        for k, each in enumerate(added):
            self._set(first + k, where, self._x[first + k] + each)

    def _set(self, at: int, where: Any, value: Any) -> None:
        self._x[at] = np.where(where, value, self._x[at])

    def move(self, displacement: Array, where: Any) -> None:
        """Displace all joints along their velocities where a condition holds."""
        for mobilizer in self._tree.topology.mobilizers:
            q, part = self._x[mobilizer.q], displacement[mobilizer.v]
            moves = mobilizer.joint.calc_position_rates(scalars.array(q), part)
            for k, each in enumerate(moves, start=mobilizer.q.start):
                self._set(k, where, self._x[k] + each)

    def vector(self) -> Array:
        """Return all of them."""
        return scalars.array(self._x)


class _Contact(NamedTuple):
    """One equation of a stop, at an instant."""

    stop: UnilateralConstraint
    row: Row
    scale: Scale
    mode: Any
    held: Any
    rate: Any
    gap: Any
    acceleration: Any
    limit: Any
    restitution: Any
    slowest: Any
    force: Any
    compliance: Any
    reach: Any = TOUCHING  # how far counts as touching, as a part of the usual size

    @property
    def rests(self) -> Any:
        """Whether it is at rest at its limit."""
        return rests(self.gap, self.rate, self.scale, self.reach)

    @property
    def strikes(self) -> Any:
        """Whether it is an impact."""
        touching = touches(self.gap, self.scale, self.reach)
        approaches = np.logical_and(touching, self.rate < -self.scale.still)
        return np.logical_and(approaches, self.held == 0.0)

    @property
    def rebound(self) -> Any:
        """Its rate after an impact that it takes part in."""
        fast = -self.restitution * self.rate
        return np.where(np.logical_and(self.strikes, fast >= self.slowest), fast, 0.0)


def switched(tree: ConstrainedTree, context: Any) -> Mapping[Any, Array]:
    """Return the state in which velocities that have passed through zero rest."""
    values, modes = _Values(tree, context), {}
    for each in tree.constraints:
        if isinstance(each, StickingConstraint):
            mode, v = each.modes(context), each.velocity(context)
            pairs = list(zip(mode, v, strict=True))
            stops = [np.logical_and(m != 0.0, m * rate <= 0.0) for m, rate in pairs]
            for row, stop in zip(each.rows, stops, strict=True):
                values.set_rate(each, row, stop, 0.0)
            modes[each.modes] = scalars.array(
                [np.where(stop, 0.0, m) for stop, m in zip(stops, mode, strict=True)]
            )
    return {tree.state: values.vector(), **modes}


def settled(tree: ConstrainedTree, context: Any) -> Mapping[Any, Array]:
    """Return the state after one round in which modes come to fit."""
    contacts = _contacts(tree, context)
    frictions = [each for each in tree.constraints if isinstance(each, StickingConstraint)]
    values = _Values(tree, context)
    strikes = _any([contact.strikes for contact in contacts])
    first = _First(np.logical_not(strikes))
    accelerations = tree.rates(context)
    closed = [_next_contact(contact, first) for contact in contacts]
    result: dict[Any, Array] = {}
    if contacts:
        result |= _let_strike(tree, context, contacts, strikes, closed, values)
    for each in frictions:
        part = tree.velocities_of(each.joint)
        modes = _next_slips(each, context, accelerations[part], first)
        for k, row in enumerate(each.rows):
            v, still = values.rate(each, row), each.scales[k].still
            fits = np.where(np.abs(v) > still, np.sign(v), modes[k])
            modes[k] = np.where(strikes, fits, modes[k])
            values.set_rate(each, row, modes[k] == 0.0, 0.0)
        result[each.modes] = scalars.array(modes)
    return {tree.state: values.vector(), **result}


def _any(flags: Sequence[Any]) -> Any:
    """Return whether one of some conditions holds."""
    found: Any = np.False_
    for flag in flags:
        found = np.logical_or(found, flag)
    return found


class _First:
    """Lets the first of all changes take place that are asked for, if any may."""

    def __init__(self, may: Any) -> None:
        self._may = may

    def of(self, wanted: Any) -> Any:
        """Return whether a change takes place."""
        found = np.logical_and(self._may, wanted)
        self._may = np.logical_and(self._may, np.logical_not(found))
        return found


def _contacts(tree: ConstrainedTree, context: Any) -> list[_Contact]:
    """Return the equations of all stops."""
    found = []
    for stop in tree.constraints:
        if isinstance(stop, UnilateralConstraint):
            forces, compliances = stop.multipliers(context)
            columns = (
                *([stop] * len(stop.rows), stop.rows, stop.scales),
                *(stop.modes(context), stop.held(context), stop.rates(context)),
                *(stop.gaps(context), stop.accelerations(context)),
                *(stop.limits(context), stop.restitutions(context)),
                *(stop.rest_velocities(context), forces, compliances),
            )
            found += [_Contact(*each) for each in zip(*columns, strict=True)]
    # Corners of a face that lands meet at one instant, but for errors of those that are held.
    reach = np.where(_any([each.strikes for each in found]), _TOGETHER, TOUCHING)
    return [each._replace(reach=reach) for each in found]


def _next_contact(contact: _Contact, first: _First) -> Any:
    """Return whether a contact is closed next, where nothing strikes."""
    slack = contact.scale.slack
    pulled = contact.force * contact.compliance <= -0.5 * slack
    opens = first.of(np.logical_and(contact.held > 0.0, pulled))
    pressed = np.logical_and(contact.rests, contact.acceleration <= -0.5 * slack)
    closes = first.of(np.logical_and(contact.mode == 0.0, pressed))
    return np.where(opens, 0.0, np.where(closes, 1.0, contact.held))


def _next_slips(
    friction: StickingConstraint, context: Any, accelerations: Array, first: _First
) -> list[Any]:
    """Return the modes of friction, where nothing strikes."""
    modes, v, held = friction.modes(context), friction.velocity(context), friction.held(context)
    forces, _ = friction.multipliers(context)
    firmness, directions = friction.firmness(context), friction.directions(context)
    found = []
    for k, scale in enumerate(friction.scales):
        breaks = np.logical_and(held[k] > 0.0, firmness[k] <= -0.5 * scale.slack)
        breaks = first.of(breaks)
        back = modes[k] * accelerations[k] < -scale.faint
        rests = np.logical_and(modes[k] != 0.0, np.abs(v[k]) <= scale.still)
        sticks = first.of(np.logical_and(rests, back))
        mode = np.where(sticks, 0.0, directions[k])
        found.append(np.where(breaks, -np.sign(forces[k]), mode))
    return found


def _let_strike(
    tree: ConstrainedTree,
    context: Any,
    contacts: Sequence[_Contact],
    strikes: Any,
    closed: Sequence[Any],
    values: _Values,
) -> dict[Any, Array]:
    """Let coordinates strike their stops; return the state of these, struck or not."""
    # Those that strike and those that rest take part with impulses Λ, so that 0 <= Λ ⊥ ġ⁺ - r >= 0
    # with the rebound r of each. Which impulses are zero is found by pivoting. In sequential
    # impacts only the first one that strikes takes part; the next round lets the next one strike.
    # Friction then acts at those that push.
    conditions = tree.conditions(context)
    equations = UpheldEquations(
        tree.articulation(context), conditions, tree.regularization(context)
    )
    places = [(int(each.stop.index or 0), each.stop.rows.index(each.row)) for each in contacts]
    if tree.impacts_are_sequential:
        first = _First(np.True_)
        taking_part = [first.of(each.strikes) for each in contacts]
    else:
        taking_part = [_any([each.strikes, each.held > 0.0, each.rests]) for each in contacts]
    before = rates = [each.rate for each in contacts]
    jumps = [each.rebound - each.rate for each in contacts]
    wanted = _by_constraint(tree, contacts, jumps)

    def held(pushing: Sequence[Any]) -> list[Any]:
        holding = [np.where(each, 1.0, 0.0) for each in pushing]
        return [
            part if isinstance(constraint, SwitchedConstraint) else None
            for constraint, part in zip(
                tree.constraints, _by_constraint(tree, contacts, holding), strict=True
            )
        ]

    def blow(
        pushing: Sequence[Any], wanted: Sequence[Array] = wanted, rates: Sequence[Array] = before
    ) -> Blow:
        multipliers = equations.multipliers(wanted, held(pushing))
        added, pushed = equations.added(multipliers), equations.pushed({}, multipliers)
        after = []
        for contact, rate, (k, n) in zip(contacts, rates, places, strict=True):
            joint, row = contact.stop.joint, contact.row
            after.append(
                rate + equations.rows[k][n].along(pushed)
                if joint is None
                else rate + row.sign * added[tree.velocities_of(joint).start + row.k]
            )
        return Blow([multipliers[k][n] for k, n in places], multipliers, added, after)

    pushing = taking_part
    coordinates = {(contact.stop.joint or contact.stop, contact.row.k) for contact in contacts}
    for _ in range(min(len(coordinates) - 1, _MOST_PIVOTS)):
        found = blow(pushing)
        pushing = [
            np.logical_and(takes_part, np.where(pushes, impulse >= 0.0, rate < each.rebound))
            for each, takes_part, pushes, impulse, rate in zip(
                contacts, taking_part, pushing, found.impulses, found.after, strict=True
            )
        ]
    found = blow(pushing)
    has_friction = any(each.slips for each in conditions)
    if len(coordinates) > 1 and not has_friction:
        # What others send away as slowly as no rebound is stays, too; with friction, see below.
        pushing = [
            np.logical_and(takes_part, np.logical_or(pushes, rate < each.slowest))
            for each, takes_part, pushes, rate in zip(
                contacts, taking_part, pushing, found.after, strict=True
            )
        ]
        found = blow(pushing)
    works: Sequence[Array] = [0.0] * len(contacts)
    if has_friction:
        pushes_by = [
            impulse * each.compliance
            for each, impulse in zip(contacts, found.impulses, strict=True)
        ]
        loaded = [
            np.logical_and(pushes, by > each.scale.still)
            for each, pushes, by in zip(contacts, pushing, pushes_by, strict=True)
        ]
        rubbed, works = rub(equations, conditions, places, held(loaded), found)
        works, rates = _worked(works, rubbed.impulses, before, rubbed.after), rubbed.after
        off = [each.rebound - rate for each, rate in zip(contacts, rates, strict=True)]
        pushing = [  # what bears no load may be sent away, or strikes next, unless that is slow
            np.logical_and(
                takes_part,
                np.logical_or(bears, np.abs(miss) <= np.maximum(each.slowest, each.scale.still)),
            )
            for each, takes_part, bears, miss in zip(
                contacts, taking_part, loaded, off, strict=True
            )
        ]
        rest = blow(pushing, _by_constraint(tree, contacts, off), rates)
        found = Blow(
            rest.impulses,
            [a + b for a, b in zip(rubbed.multipliers, rest.multipliers, strict=True)],
            rubbed.added + rest.added,
            rest.after,
        )
    added, *rebounds = _turned_back(contacts, pushing, found)
    triples = zip(contacts, pushing, found.after, strict=True)
    after = [np.where(pushes, each.rebound, rate) for each, pushes, rate in triples]
    works = _worked(works, found.impulses, rates, after)
    if any(contact.stop.joint is None for contact in contacts):
        met = [
            np.logical_or(each.held > 0.0, np.where(strikes, pushes, stays > 0.0))
            for each, pushes, stays in zip(contacts, pushing, closed, strict=True)
        ]
        back = [  # but for rounding, which would not settle
            np.where(np.abs(each.gap) > TOUCHING * each.scale.size, -each.gap, 0.0)
            if each.stop.joint is None
            else 0.0
            for each in contacts
        ]
        displacement = blow(met, _by_constraint(tree, contacts, back)).added
        values.move(displacement, _any(met))
    values.add_to_rates(strikes, added)
    modes: dict[UnilateralConstraint, list[Any]] = {each.stop: [] for each in contacts}
    lost: dict[UnilateralConstraint, Any] = dict.fromkeys(modes, 0.0)
    columns = zip(contacts, pushing, rebounds, works, closed, strict=True)
    for each, pushes, rebound, work, stays in columns:
        stop, row = each.stop, each.row
        struck = np.logical_and(strikes, pushes)
        values.set_rate(stop, row, struck, row.sign * rebound)
        rests = np.where(np.logical_and(pushes, each.rebound == 0.0), 1.0, 0.0)
        mode = np.where(strikes, rests, stays)
        values.set_rate(stop, row, mode > 0.0, 0.0)
        values.set_position(stop, row, np.logical_or(struck, mode > 0.0), each.limit)
        modes[stop].append(mode)
        lost[stop] = lost[stop] - np.where(strikes, work, 0.0)
    result: dict[Any, Array] = {}
    for stop, each_modes in modes.items():
        result[stop.modes] = scalars.array(each_modes)
        result[stop.dissipated] = stop.dissipated(context) + lost[stop]
    if tree.input_impacts is not None:
        work = np.where(strikes, driven_power(tree, context, found.multipliers), 0.0)
        result[tree.input_impacts] = tree.input_impacts(context) - work
    return result


def _turned_back(contacts: Sequence[_Contact], pushing: Sequence[Any], found: Blow) -> list[Array]:
    """Return the change of all velocities, and the rebounds, unless other constraints hinder it."""
    missed = [
        np.logical_and(
            np.logical_and(each.strikes, pushes),
            np.abs(after - each.rebound) > _MISSED * np.abs(each.rate - each.rebound),
        )
        for each, pushes, after in zip(contacts, pushing, found.after, strict=True)
    ]

    def error() -> EvaluationError:
        pairs = zip(contacts, missed, strict=True)
        names = quoted(dict.fromkeys(each.stop.name for each, misses in pairs if misses))
        return EvaluationError(
            f"Cannot let bodies rebound from {names}",
            expected="bodies that an impulse there can turn back",
            found="other constraints, such as a prescribed motion, that move them into it",
            remedy="Let prescribed motions end before the limit, or drive by a force",
        )

    speeds = sum((np.abs(each) for each in found.after), np.float64(0.0))
    changed = [found.added, *(each.rebound for each in contacts)]
    return [refuse_unless(np.logical_not(_any(missed)), speeds, each, error) for each in changed]


def _worked(
    works: Sequence[Array], impulses: Sequence[Array], before: Sequence[Array], after: Sequence[Any]
) -> list[Array]:
    """Return the works at contacts with those of impulses that change rates."""
    columns = zip(works, impulses, before, after, strict=True)
    return [work + 0.5 * p * (a + b) for work, p, a, b in columns]


def _by_constraint(
    tree: ConstrainedTree, contacts: Sequence[_Contact], values: Sequence[Any]
) -> list[Array]:
    """Return values of the equations of stops by constraints, with zeros for all others."""
    parts: list[list[Any]] = [[] for _ in tree.constraints]
    for contact, value in zip(contacts, values, strict=True):
        assert contact.stop.index is not None  # the plant builder numbers constraints before
        parts[contact.stop.index].append(value)
    sizes = [each.num_equations for each in tree.constraints]
    return [scalars.array(part or [0.0] * n) for part, n in zip(parts, sizes, strict=True)]

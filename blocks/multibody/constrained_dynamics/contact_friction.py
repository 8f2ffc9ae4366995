"""The friction of rigid contacts: together with their loads while they are closed, and in impacts.

Friction follows the loads of contacts, and loads these itself, so that both are solved for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import dot, solve_symmetric
from flexure.blocks.multibody.constrained_dynamics.constrained_motion import UpheldEquations
from flexure.blocks.multibody.constraints.constraint import Condition
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.values.arrays import Array, FloatArray

_LEAST = 1e-9  # of the determinant must be left
_ROUNDS = 10  # in which impulses of friction follow each other, exact at once for a ball alone
_MANY = 1e9
_FLAT = 1e-9  # of the mobility along a surface is none, where joints allow no motion


class ContactFriction:
    """The friction of closed contacts, added to multipliers and rates without it.

    Friction is in proportion to the multiplier λ of its contact, with a factor that depends on the
    velocity of sliding. With the multipliers λ₀ without friction, and the changes K by the friction
    of each contact under a load of 1, it solves ``(I - K) λ = λ₀``. If friction grew from zero, the
    motion would follow it without a jump as long as the determinant of I - K is positive, which is
    K < 1 for a single contact.
    """

    def __init__(
        self, equations: UpheldEquations, conditions: Sequence[Condition], names: Sequence[str]
    ) -> None:
        articulation = equations.articulation
        slips = [(k, n, slip) for k, c in enumerate(conditions) for n, slip in enumerate(c.slips)]
        self._names = [names[k] for k, _, _ in slips]
        self._places = [(k, n) for k, n, _ in slips]
        found = [equations.response(articulation.push(slip.force, {})) for _, _, slip in slips]
        self._responses = [(articulation.rates(pushed), values) for pushed, values in found]

    def rubbing(self, rates: Array, values: list[Array]) -> tuple[Array, list[Array]]:
        """Return rates of all velocities and multipliers with the friction that belongs to them.

        Raises EvaluationError when friction presses its own contact by more than it takes to cause
        it (Painlevé).
        """
        if not self._places:
            return rates, values
        loads = scalars.array([values[k][n] for k, n in self._places])
        K = scalars.array([[each[k][n] for _, each in self._responses] for k, n in self._places])
        left = np.eye(len(loads)) - K
        _, pivots = eliminate(left, loads)
        loads = refuse_unless(
            reduce(mul, pivots) > _LEAST,
            np.sum(K),
            # One of the pivots may be small, but none of those of the normal equations.
            solve_symmetric(left.T @ left, left.T @ loads),
            lambda: EvaluationError(
                f"Cannot find the friction of {self._pressed(K)}",
                expected="friction that presses its own contact by less than it takes to cause it",
                found=f"{np.max(np.linalg.eigvals(K).real):.3g} times as much: it may jam, or have "
                "several motions (Painlevé's paradox)",
                remedy="Make the friction smaller; a compliant Contact with friction has a unique "
                "motion",
            ),
        )
        for load, (own, each) in zip(loads, self._responses, strict=True):
            rates = rates + load * own
            values = [a + load * b for a, b in zip(values, each, strict=True)]
        return rates, values

    def _pressed(self, K: FloatArray) -> str:
        """Name the contacts that friction loads."""
        pairs = zip(self._names, np.any(K != 0.0, axis=1), strict=True)
        return quoted(dict.fromkeys(name for name, is_pressed in pairs if is_pressed))


def eliminate(A: Array, b: Array) -> tuple[Array, Array]:
    """Return x with A x = b and the pivots, for an A whose diagonal prevails."""
    rows = [np.concatenate([A[k], b[k : k + 1]]) for k in range(len(b))]
    pivots = []
    with np.errstate(all="ignore"):  # anything where it is singular
        for k in range(len(rows)):
            pivots.append(rows[k][k])
            pivot = rows[k] / rows[k][k]
            rows = [pivot if j == k else row - row[k] * pivot for j, row in enumerate(rows)]
    return scalars.array([row[-1] for row in rows]), scalars.array(pivots)


def refuse_unless(
    holds: Any, given: Any, value: Array, make_error: Callable[[], EvaluationError]
) -> Array:
    """Return a value, refused unless a condition holds, if what was given is finite.

    Otherwise the value is NaN, and simulations find out which block is the cause.
    """
    refused = np.logical_and(np.logical_not(holds), np.isfinite(given))
    return scalars.refuse_where(refused, value, make_error)


class Blow(NamedTuple):
    """An impact: impulses, and what they change."""

    impulses: list[Array]  # along the gap of each contact
    multipliers: list[Array]  # the impulses of each constraint
    added: Array  # what is added to all velocities
    after: list[Array]  # the rate of each gap afterwards


def rub(
    equations: UpheldEquations,
    conditions: Sequence[Condition],
    places: Sequence[tuple[int, int]],
    held: Sequence[Any],
    blow: Blow,
) -> tuple[Blow, list[Array]]:
    """Return an impact with the impulses of friction, and the work of these at each contact.

    Friction leaves the rates of the gaps that push as they are. It ends the sliding u that is left
    if no gap rebounds, or opposes it with the whole cone: P = -μ Λ u/|u|. With the sliding w
    without friction, the kinetic energy changes by P (w + u)/2, and falls. Rounds find P, exactly
    where contacts do not load each other. P is then multiplied by the common factor after which the
    energy is least, or up to which no impulse leaves its cone. ``places`` has the constraint of
    each contact, and which of its equations it is. ``held`` is 1 where a contact pushes, else 0, as
    for `UpheldEquations`.

    Source of the law in the plane: A. Chatterjee, A. Ruina, A new algebraic rigid-body collision
    law based on impulse space considerations, Journal of Applied Mechanics 65 (1998) 939-951.
    """
    articulation = equations.articulation
    rubs = [c for c, (k, _) in enumerate(places) if conditions[k].slips]
    slips = [conditions[k].slips[n] for k, n in (places[c] for c in rubs)]
    pushes = [articulation.push(forces, {}) for slip in slips for forces in slip.forces]
    responses = [equations.response(push, held) for push in pushes]
    # What impulses P along the tangents do to velocities of sliding, S P, and to loads, B P.
    S = scalars.array([[push.along(pushed) for pushed, _ in responses] for push in pushes])
    B = [scalars.array([values[k][n] for _, values in responses]) for k, n in places]
    loaded = [held[k][n] for k, n in places]
    loads = [on * impulse for on, impulse in zip(loaded, blow.impulses, strict=True)]
    hit = equations.pushed({}, blow.multipliers)
    before = scalars.array([rate for slip in slips for rate in slip.rates])
    after = before + scalars.array([push.along(hit) for push in pushes])
    w = after
    for on, rate, each in zip(loaded, blow.after, B, strict=True):
        w = w + on * rate * each
    surfaces = [
        _Surface(slice(2 * j, 2 * j + 2), loaded[c], loads[c], slip.coefficient, B[c])
        for j, (c, slip) in enumerate(zip(rubs, slips, strict=True))
    ]
    near, P = _against_sliding(surfaces, S, w), np.zeros(len(pushes))
    for group in _groups([set(each.efforts) for each in (*chain(*equations.rows), *pushes)]):
        Q = near * np.array([1.0 if group & set(push.efforts) else 0.0 for push in pushes])
        shares = [_share(dot(Q, S @ Q), -dot(Q, w))]
        shares += [_share(-dot(each, Q), load) for each, load in zip(B, loads, strict=True)]
        shares += [_share(each.room(Q), each.coefficient * each.load) for each in surfaces]
        P = P + np.where(np.max(np.abs(Q)) > 0.0, reduce(np.minimum, shares), 0.0) * Q
    multipliers, own = list(blow.multipliers), dict[int, Array]()
    for each, push, (_, values) in zip(P, pushes, responses, strict=True):
        multipliers = [a + each * b for a, b in zip(multipliers, values, strict=True)]
        for number, rates in push.rates.items():
            own[number] = own[number] + each * rates if number in own else each * rates
    changes = [a - b for a, b in zip(multipliers, blow.multipliers, strict=True)]
    pushed, final = equations.pushed(own, changes), after + S @ P
    mean = 0.5 * (before + final)
    work = {c: dot(P[on.part], mean[on.part]) for c, on in zip(rubs, surfaces, strict=True)}
    works = [work.get(c, 0.0) for c, _ in enumerate(places)]
    impulses = [multipliers[k][n] for k, n in places]
    added = blow.added + articulation.rates(pushed)
    turned = [equations.rows[k][n].along(pushed) for k, n in places]
    left = [rate + each for rate, each in zip(blow.after, turned, strict=True)]
    return Blow(impulses, multipliers, added, left), works


class _Surface(NamedTuple):
    """A contact with friction in an impact."""

    part: slice  # where its tangents are among all
    loaded: Array  # 1 where it pushes, else 0
    load: Array  # its impulse along the normal without friction
    coefficient: Array
    loading: Array  # what impulses along all tangents add to its load

    def room(self, P: Array) -> Array:
        """Return what impulses along all tangents need of the load without them, times μ."""
        return _size(P[self.part]) - self.coefficient * dot(self.loading, P)


def _against_sliding(surfaces: Sequence[_Surface], S: Array, w: Array) -> Array:
    """Return impulses along all tangents that end the sliding or oppose it, nearly."""
    # They are P = -(w + S P)/ν against the sliding that is left, with a ν >= 0 for each contact
    # that its load decides. Rounds of Newton's method find it, with the impulses of other contacts
    # from the round before, damped by the number of them.
    P, unit = np.zeros(len(w)), np.eye(2)
    nu: list[Array] = [0.0 for _ in surfaces]
    for _ in range(_ROUNDS):
        sliding, found = w + S @ P, []
        for j, each in enumerate(surfaces):
            own = each.part
            A = _count(surfaces, S, own) * S[own, own]
            others = dot(each.loading, P) - dot(each.loading[own], P[own])
            limit = each.coefficient * np.maximum(each.load + others, 0.0)
            left = A + nu[j] * unit
            Q = -each.loaded * _stopping(left, sliding[own] - A @ P[own])
            size, rate = _size(Q), -_stopping(left, Q)
            room = size - each.coefficient * dot(each.loading[own], Q)
            slope = dot(Q, rate) / np.where(size > 0.0, size, 1.0)
            slope = slope - each.coefficient * dot(each.loading[own], rate)
            goes = np.logical_and(room > 0.0, slope < 0.0)
            beyond = room / np.where(limit > 0.0, limit, 1.0) - 1.0
            step = -room * beyond / np.where(goes, slope, 1.0)
            nu[j] = np.where(goes, np.maximum(nu[j] + step, 0.0), nu[j])
            found.append(np.minimum(_share(room, limit), 1.0) * Q)
        P = np.concatenate(found)
    return P


def _count(surfaces: Sequence[_Surface], S: Array, own: slice) -> Array:
    """Return with how many of the contacts that push one is coupled, itself included."""
    others = (each for each in surfaces if each.part != own)
    flags = (np.where(np.max(np.abs(S[own, each.part])) > 0.0, each.loaded, 0.0) for each in others)
    return sum(flags, 1.0)


def _stopping(S: Array, w: Array) -> Array:
    """Return the smallest P with S P = w, also where nothing moves along one of the tangents."""
    trace, (a, b, d) = S[0, 0] + S[1, 1], (S[0, 0], S[0, 1], S[1, 1])
    determinant = a * d - b * b
    is_regular = determinant > _FLAT * trace * trace
    turned = scalars.array([d * w[0] - b * w[1], a * w[1] - b * w[0]])
    inverse = turned / np.where(is_regular, determinant, 1.0)
    return np.where(is_regular, inverse, w / np.where(trace > 0.0, trace, 1.0))


def _share(room: Array, load: Array) -> Array:
    """Return how many times the room the load is, a great number where there is no room."""
    return np.where(room > 0.0, load / np.where(room > 0.0, room, 1.0), _MANY)


def _size(vector: Array) -> Array:
    """Return the length of a vector, with finite slopes where it is zero."""
    square = dot(vector, vector)
    return np.where(square > 0.0, np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)


def _groups(reached: Sequence[set[int]]) -> list[set[int]]:
    """Return the sets of joints that equations and friction connect."""
    groups: list[set[int]] = []
    for each in reached:
        meeting = [group for group in groups if group & each]
        groups = [group for group in groups if not group & each] + [each.union(*meeting)]
    return groups

"""Friction that sticks: the foot of a spring and a damper along the surface holds or slips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.force_elements.force_element import BodyAttachment
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array

if TYPE_CHECKING:
    from flexure.blocks.forces.contacts.contact import Contact


def friction_constants(attempt: str, **given: float | None) -> dict[str, float]:
    """Return the constants of friction that are given, or refuse those that do not fit together."""
    has = {what: value is not None for what, value in given.items()}
    sticks, at_rest = has["tangential_stiffness"], has["static_friction"]
    is_complete = has["transition_velocity"] + sticks == has["friction"]
    require_that(
        is_complete and at_rest == has["stribeck_velocity"] and at_rest <= sticks,
        attempt,
        "friction with transition_velocity or tangential_stiffness; with the latter also "
        "static_friction and stribeck_velocity, or neither",
        ", ".join(f"{what}={value!r}" for what, value in given.items()),
        "Choose a transition velocity far below those of sliding, such as 1e-3, or a tangential "
        "stiffness of about the stiffness",
        error=DeclarationError,
    )
    return {what: value for what, value in given.items() if value is not None}


class StickingFriction:
    """The friction of all places of a contact, whose state is the stretch z of each.

    With the limit μ N and the velocity v of sliding::

        f = k (z + T v),   F = -f min(1, μ N/|f|),   ż = -(F/k + z)/T

    Parameters of the contact are the constants k and T, and those of friction at rest. Stretches
    are expressed in the frame of the ground.
    """

    def __init__(self, contact: Contact, ground: BodyAttachment) -> None:
        self._contact, self._ground, contact.sticks = contact, ground, True
        assert contact.friction is not None  # nothing sticks without
        self._friction = contact.friction  # of a fast slip
        if contact.static_friction is not None:
            contact.declare_relation(self._friction, "<=", contact.static_friction)

    def _coefficient(self, context: Any, v: Array) -> Array:
        """Return the coefficient of friction at a velocity."""
        friction, at_rest = self._friction(context), self._contact.static_friction
        if at_rest is None:
            return friction
        fading = np.exp(-dot(v, v) / self._contact.stribeck_velocity(context) ** 2)
        return friction + (at_rest(context) - friction) * fading

    def _stretches(self, context: Any) -> list[Array]:
        """Return the stretch at each place."""
        state = self._contact.continuous_state
        assert state is not None  # it is declared where friction sticks
        z = state(context)
        return [z[k : k + 3] for k in range(0, len(z), 3)]

    def force(self, context: Any, k: int, normal: Array, load: Array, v: Array) -> Array:
        """Return the friction on A at a place under a load, in the world."""
        limit = self._coefficient(context, v) * load
        z = self._ground.at_rest(context).X_WF.R @ self._stretches(context)[k]
        stiffness = self._contact.tangential_stiffness(context)
        along = z - dot(z, normal) * normal
        f = stiffness * (along + self._contact.relaxation_time(context) * v)
        square = dot(f, f)
        slips = square > limit * limit
        return -f * np.where(slips, limit / np.sqrt(np.where(slips, square, 1.0)), 1.0)

    def rates(self, context: Any) -> Array:
        """Return the rates of the stretches at all places, which relax where there is no force."""
        contact, z = self._contact, np.stack(self._stretches(context))
        stiffness, time = contact.tangential_stiffness(context), contact.relaxation_time(context)
        R = self._ground.at_rest(context).X_WF.R

        def held() -> Array:
            forces = np.stack([R.T @ push.friction for push in contact.pushes(context)])
            return -(forces / stiffness + z) / time

        return scalars.skip_where(contact.are_apart(context), -z / time, held)

    def energy(self, context: Any) -> Array:
        """Return the energy of the springs."""
        squares = [dot(z, z) for z in self._stretches(context)]
        return 0.5 * self._contact.tangential_stiffness(context) * sum(squares)

    def power(self, context: Any) -> Array:
        """Return the power that goes into the springs."""
        pairs = zip(self._stretches(context), self.rates(context), strict=True)
        powers = [dot(z, rate) for z, rate in pairs]
        return self._contact.tangential_stiffness(context) * sum(powers)

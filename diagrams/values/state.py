"""State handles: continuous (q, v, z), discrete groups, and abstract state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import (
    Array,
    Distribution,
    FloatArray,
    Problem,
    as_finite,
    as_numbers,
    check_labels,
    check_problem,
    check_size,
    copied,
)
from flexure.diagrams.values.handles import ContextLike, Handle

#: Handles an event: reads the context and returns new values by the handles of states.
UpdateHandler: TypeAlias = Callable[[Any], "Mapping[Handle, Any] | None"]


class ContinuousState(Handle):
    """The continuous state of a block: positions q, velocities v and the rest z.

    Made by `LeafSystem.declare_continuous_state`. Calling the handle gives the whole vector
    ``(q, v, z)``; `q`, `v` and `z` give its parts.

    Attributes
    ----------
    num_q, num_v, num_z : int
        Sizes of the three parts.
    default : ndarray, shape (size,)
        Value in new contexts.
    element_names : tuple of str or None
        One name per component.
    problem : callable or None
        ``problem(vector) -> str | None`` describes what is wrong with finite numbers.
    normalize : callable or None
        ``normalize(vector) -> vector`` brings numbers to their normal form.
    distribution : callable or None
        Draws a random state: ``distribution(rng) -> vector``.

    See Also
    --------
    DiscreteState : A vector that changes in updates.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> lag.x.num_q, lag.x.num_z, lag.x(lag.create_default_context())
    (0, 1, array([0.]))
    """

    what = "continuous state"

    def __init__(
        self,
        system: Any,
        name: str,
        *,
        q: int,
        v: int,
        z: int,
        default: npt.ArrayLike | None,
        element_names: Sequence[str] | None,
        problem: Problem | None,
        normalize: Callable[[FloatArray], FloatArray] | None,
        distribution: Distribution | None,
        doc: str,
    ) -> None:
        super().__init__(system, name, 0, doc)
        subject = f"continuous state '{self.full_name}'"
        self.num_q = check_size(q, subject)
        self.num_v = check_size(v, subject)
        self.num_z = check_size(z, subject)
        self.size = self.num_q + self.num_v + self.num_z
        if self.size == 0:
            raise DeclarationError(
                f"Cannot declare {subject}",
                expected="at least one of q, v, z to be positive",
                found="q=0, v=0, z=0",
            )
        if self.num_v > self.num_q:
            raise DeclarationError(
                f"Cannot declare {subject}",
                expected="at least as many positions q as velocities v",
                found=f"q={q}, v={v}",
                remedy="Declare velocities without positions as z",
            )
        self.problem = check_problem(problem, f"Cannot declare {subject}")
        self.normalize = normalize
        self.default: FloatArray = self.check(
            np.zeros(self.size) if default is None else default, f"Cannot declare {subject}"
        )
        self.element_names = check_labels(element_names, self.size, subject)
        self.distribution = distribution

    def __call__(self, context: ContextLike) -> Array:
        """Return ``(q, v, z)`` in ``context`` as a read-only vector."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.store.x[leaf.x_slice]

    get = Handle._checked_call

    def q(self, context: ContextLike) -> Array:
        """Return the positions."""
        return self(context)[: self.num_q]

    def v(self, context: ContextLike) -> Array:
        """Return the velocities."""
        return self(context)[self.num_q : self.num_q + self.num_v]

    def z(self, context: ContextLike) -> Array:
        """Return the remaining components."""
        return self(context)[self.num_q + self.num_v :]

    def set(self, context: ContextLike, value: npt.ArrayLike) -> None:
        """Set the whole vector ``(q, v, z)`` in ``context``."""
        leaf = self._leaf(context)
        leaf.write_continuous_state(self.check(value, f"Cannot set state '{self.full_name}'"))

    def check(self, value: npt.ArrayLike, attempt: str) -> Array:
        """Return a frozen copy of ``value`` when it is acceptable, else raise."""
        return as_finite(value, (self.size,), attempt, problem=self.problem)


class DiscreteState(Handle):
    """One group of discrete state: a vector that changes in updates only.

    Made by `LeafSystem.declare_discrete_state`.

    Attributes
    ----------
    default : ndarray, shape (size,)
        Value in new contexts.

    See Also
    --------
    ContinuousState : A vector that the integrator advances.
    AbstractState : A state that is not a vector.

    Examples
    --------
    >>> import flexure as fx
    >>> delay = fx.UnitDelay("delay", period=0.1, size=2)
    >>> context = delay.create_default_context()
    >>> delay.x.set(context, [1.0, 2.0, 3.0, 4.0])
    >>> delay.y.eval(context)
    array([3., 4.])
    """

    what = "discrete state"

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        default: npt.ArrayLike,
        *,
        element_names: Sequence[str] | None,
        distribution: Distribution | None,
        doc: str,
    ) -> None:
        super().__init__(system, name, index, doc)
        subject = f"discrete state '{self.full_name}'"
        attempt = f"Cannot declare {subject}"
        numbers = np.atleast_1d(as_numbers(default, attempt))
        self.size = numbers.size
        self.default: FloatArray = self.check(numbers, attempt)
        self.element_names = check_labels(element_names, self.size, subject)
        self.distribution = distribution

    def __call__(self, context: ContextLike) -> Array:
        """Return the group in ``context`` as a read-only vector."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.discrete[self.index]

    get = Handle._checked_call

    def set(self, context: ContextLike, value: npt.ArrayLike) -> None:
        """Set the group in ``context``."""
        leaf = self._leaf(context)
        leaf.write_discrete_state(
            self.index, self.check(value, f"Cannot set discrete state '{self.full_name}'")
        )

    def check(self, value: npt.ArrayLike, attempt: str) -> Array:
        """Return a frozen copy of ``value`` when shape and finiteness are right, else raise."""
        return as_finite(value, (self.size,), attempt)


class AbstractState(Handle):
    """A state that is not a vector: a mode, a queue, a random generator's state.

    Made by `LeafSystem.declare_abstract_state`. Unrestricted updates replace values and never
    modify them in place; values are copied when they are set.

    See Also
    --------
    DiscreteState : A vector that changes in updates.
    LeafSystem : Declares states.

    Examples
    --------
    >>> import flexure as fx
    >>> class Machine(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.mode = self.declare_abstract_state("mode", "idle")
    >>> machine = Machine("machine")
    >>> machine.mode(machine.create_default_context())
    'idle'
    """

    what = "abstract state"

    def __init__(self, system: Any, name: str, index: int, default: Any, doc: str = "") -> None:
        super().__init__(system, name, index, doc)
        self.default = self.check(default, f"Cannot declare state '{self.full_name}'")

    def __call__(self, context: ContextLike) -> Any:
        """Return the value in ``context``."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.abstract[self.index]

    get = Handle._checked_call

    def set(self, context: ContextLike, value: Any) -> None:
        """Set a copy of ``value`` in ``context``."""
        leaf = self._leaf(context)
        leaf.write_abstract_state(
            self.index, self.check(value, f"Cannot set state '{self.full_name}'")
        )

    def check(self, value: Any, attempt: str) -> Any:
        """Return a copy of ``value``; anything goes."""
        return copied(value, attempt)

"""Parameters: constants of a block that live in the context and can be set without a rebuild."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import flag
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import (
    Array,
    Distribution,
    Problem,
    as_finite,
    as_number,
    as_numbers,
    check_problem,
    copied,
    show,
)
from flexure.diagrams.values.handles import ContextLike, Handle


class NumericParameter(Handle):
    """A real scalar or array with unit and bounds.

    Made by `LeafSystem.declare_numeric_parameter`. Calling the handle with a context gives the
    value inside of equations; `set` changes it.

    Attributes
    ----------
    default : numpy.float64 or ndarray
        Value in new contexts.
    shape : tuple of int
        Shape of the value; ``()`` for a scalar.
    unit : str
        Physical unit, for labels and messages.
    lower, upper : float or ndarray
        Bounds, element by element.
    exclusive : bool
        Whether the bounds themselves are refused.
    allow_infinite : bool
        Whether infinities are accepted (limits often are infinite).
    problem : callable or None
        ``problem(value) -> str | None`` describes what is wrong with a value that keeps the bounds.
    sparse : bool
        Whether zeros in it are usually there to stay, as in the matrices of a linear system. Native
        code leaves out the terms that they make zero, and is compiled again when one is set to
        another value.
    distribution : callable or None
        Draws a random value: ``distribution(rng) -> value``.

    See Also
    --------
    AbstractParameter : A parameter that is not a number.
    LeafSystem : Declares parameters.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> lag.time_constant.unit, float(lag.time_constant.lower)
    ('s', 0.0)
    """

    what = "parameter"
    #: What messages advise where a value is out of bounds.
    remedy: str | None = None

    def __init__(
        self,
        system: Any,
        name: str,
        index: int,
        default: npt.ArrayLike,
        *,
        unit: str = "",
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        exclusive: bool = False,
        allow_infinite: bool = False,
        doc: str = "",
        problem: Problem | None = None,
        sparse: bool = False,
        distribution: Distribution | None = None,
    ) -> None:
        super().__init__(system, name, index, doc)
        attempt = f"Cannot declare parameter '{self.full_name}'"
        self.unit = unit
        self.shape = as_numbers(default, attempt).shape
        self.lower = self._bound(lower, f"{attempt} with the lower bound {lower!r}")
        self.upper = self._bound(upper, f"{attempt} with the upper bound {upper!r}")
        self.exclusive = flag(exclusive, "exclusive", attempt, error=DeclarationError)
        self.allow_infinite = flag(
            allow_infinite, "allow_infinite", attempt, error=DeclarationError
        )
        self.problem = check_problem(problem, attempt)
        self.sparse = sparse
        self.distribution = distribution
        self.default = self.check(default, attempt)

    def __call__(self, context: ContextLike) -> Array:
        """Return the value in ``context``; arrays are read-only."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.parameters[self.index]

    get = Handle._checked_call

    def set(self, context: ContextLike, value: npt.ArrayLike) -> None:
        """Set the value in ``context``.

        Raises
        ------
        ValueRefusedError
            When shape, bounds or finiteness are violated; the context is unchanged.
        """
        leaf = self._leaf(context)
        number = self.check(value, f"Cannot set parameter '{self.full_name}'{self._in_unit}")
        leaf.store.require_no_onlooker(f"parameter '{self.full_name}'", is_state=False)
        leaf.write_parameter(self.index, number)

    def check(self, value: npt.ArrayLike, attempt: str) -> Array:
        """Return a frozen copy of ``value`` when it is acceptable, else raise."""
        return as_finite(
            value,
            self.shape,
            attempt,
            problem=self.problem,
            lower=self.lower,
            upper=self.upper,
            exclusive=self.exclusive,
            allow_infinite=self.allow_infinite,
            unit=self.unit,
            remedy=self.remedy,
        )

    def _bound(self, bound: npt.ArrayLike, attempt: str) -> Array:
        """Return a frozen copy of one bound for all elements or of one for each."""
        number = as_numbers(bound, attempt)
        return as_number(number, self.shape if number.ndim else (), attempt)

    @property
    def _in_unit(self) -> str:
        return f" [{self.unit}]" if self.unit else ""

    def __repr__(self) -> str:
        return f"<NumericParameter '{self.full_name}' = {show(self.default)}{self._in_unit}>"


class AbstractParameter(Handle):
    """A parameter that is not a number: a table, a mode, a callable.

    Made by `LeafSystem.declare_abstract_parameter`. Values are copied when they are set, and must
    not be modified afterwards.

    See Also
    --------
    NumericParameter : A number or an array of numbers.
    LeafSystem : Declares parameters.

    Examples
    --------
    >>> import flexure as fx
    >>> class Switch(fx.LeafSystem):
    ...     def __init__(self, name):
    ...         super().__init__(name)
    ...         self.mode = self.declare_abstract_parameter("mode", "off")
    >>> switch = Switch("switch")
    >>> switch.mode(switch.create_default_context())
    'off'
    """

    what = "abstract parameter"

    def __init__(self, system: Any, name: str, index: int, default: Any, doc: str = "") -> None:
        super().__init__(system, name, index, doc)
        self.default = copied(default, f"Cannot declare parameter '{self.full_name}'")

    def __call__(self, context: ContextLike) -> Any:
        """Return the value in ``context``."""
        leaf: Any = context if context.system is self.system else self._leaf(context)
        return leaf.abstract_parameters[self.index]

    get = Handle._checked_call

    def set(self, context: ContextLike, value: Any) -> None:
        """Set a copy of ``value`` in ``context``."""
        leaf = self._leaf(context)
        leaf.store.require_no_onlooker(f"parameter '{self.full_name}'", is_state=False)
        leaf.write_abstract_parameter(
            self.index, copied(value, f"Cannot set parameter '{self.full_name}'")
        )


#: How the left parameter of a relation compares with the right one.
Comparison = Literal["<", "<="]
COMPARISONS = {"<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Relation:
    """A relation that two parameters of a block must satisfy, element by element.

    Made by `LeafSystem.declare_relation`. A scalar applies to every element of the other one.
    """

    left: NumericParameter
    comparison: Comparison  # how they compare
    right: NumericParameter

    @classmethod
    def checked(cls, block: Any, left: Any, comparison: Any, right: Any) -> Relation:
        """Return the relation of two parameters of a block, if their defaults keep it."""
        own = [isinstance(e, NumericParameter) and e.system is block for e in (left, right)]
        known = isinstance(comparison, str) and comparison in COMPARISONS
        if not (all(own) and known):
            raise DeclarationError(
                f"Cannot declare a relation of '{block.label}'",
                expected="two numeric parameters of this block with '<' or '<=' between them",
                found=f"{left!r:.80} {comparison!r:.20} {right!r:.80}",
            )
        relation = cls(left, comparison, right)
        if not relation.holds(left.default, right.default):
            raise DeclarationError(
                f"Cannot make the {type(block).__name__} '{block.name}'",
                expected=str(relation),
                found=relation.found(left.default, right.default),
            )
        return relation

    def holds(self, left: Any, right: Any) -> bool:
        """Return whether values keep it; symbols do, as nothing is known of them."""
        if scalars.is_symbolic(left) or scalars.is_symbolic(right):
            return True
        return bool(np.all(COMPARISONS[self.comparison](left, right)))

    def require(self, left: Any, right: Any) -> None:
        """Refuse values that contradict each other."""
        if not self.holds(left, right):
            raise ValueRefusedError(
                f"Cannot use the parameters of '{self.left.system.label}'",
                expected=str(self),
                found=self.found(left, right),
                remedy="Set both so that they agree, in any order, before they are used",
            )

    def found(self, left: Any, right: Any) -> str:
        """Write the values that contradict each other."""
        return f"{self.left.name}={show(left)}, {self.right.name}={show(right)}"

    def __str__(self) -> str:
        return f"{self.left.name} {self.comparison} {self.right.name}"

"""Limits: quantities of a force element, and the bounds that they should not exceed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths
from flexure.diagrams.systems.ports import Calculation, Prerequisite
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter


@dataclass(frozen=True)
class Limit:
    """A quantity of a force element, and the bound that it should not exceed.

    An element declares its limits with ``ForceElement.declare_limits``; `flexure.check_limits` and
    `flexure.doctor` check them.

    Parameters
    ----------
    quantity : str
        What is bounded, such as ``"stress"``.
    bound : float or NumericParameter
        The bound > 0, a number or a parameter of the element, in ``unit``.
    unit : str
        Unit of both; empty for ratios.
    why : str
        The consequence of exceeding the bound.
    look : str
        The remedy.
    misleads : float
        The multiple of the bound above which equilibria of the element may differ from those of the
        real part, of which statics warn; infinite if they only become less accurate.

    See Also
    --------
    doctor : Report exceeded limits and implausible values.

    Examples
    --------
    >>> Limit("angle", 0.3, "rad", "The element is linear", "Divide it").quantity
    'angle'
    """

    quantity: str
    bound: float | NumericParameter
    unit: str
    why: str
    look: str
    misleads: float = math.inf

    def bound_in(self, context: Any) -> Any:
        """Return the bound with the values of a context."""
        return self.bound(context) if isinstance(self.bound, NumericParameter) else self.bound


class Limited(LeafSystem):
    """Base class of blocks that may have limits."""

    limits: tuple[Limit, ...] = ()  # those that it declares

    def declare_limits(
        self,
        limits: Sequence[Limit],
        calc: Calculation,
        *,
        prerequisites: Sequence[Prerequisite] = (),
    ) -> None:
        """Declare quantities that must stay below a bound for the element to be valid.

        The element then has the output ``utilization``: the ratio of each quantity to its bound,
        above 1 out of range. Its components have the names of the quantities, such as ``angle``.
        `flexure.check_limits` and `flexure.doctor` report it.

        Parameters
        ----------
        limits : sequence of Limit
            At least one.
        calc : callable
            ``calc(context)`` returns the magnitudes of the quantities, in the order of ``limits``.
        prerequisites : sequence
            The inputs and states that it reads.

        Raises
        ------
        DeclarationError
            If there are no limits, or the element has declared some already.
        """
        attempt = f"Cannot declare the limits of '{self.label}'"
        if not limits or self.limits:
            found = f"{len(self.limits)} of them already" if self.limits else "none"
            raise DeclarationError(attempt, expected="at least one limit, at once", found=found)
        self.limits = tuple(limits)
        names = [re.sub(r"\W+", "_", each.quantity) for each in self.limits]
        self.utilization = self.declare_vector_output(
            "utilization",
            len(self.limits),
            partial(self._utilization, calc),
            prerequisites=prerequisites,
            element_names=names if len(set(names)) == len(names) > 1 else None,
            doc=f"{', '.join(each.quantity for each in self.limits)}, each over its limit",
        )

    def notes(self, context: Context) -> list[str]:
        """Return what matters in a root context beside the limits, such as creep."""
        return []

    def _utilization(self, calc: Calculation, context: Any) -> Array:
        values = zip(calc(context), self.limits, strict=True)
        return scalars.array([value / limit.bound_in(context) for value, limit in values])


def limited_elements(context: Context) -> Iterator[tuple[str, Limited]]:
    """Yield path and element of all elements of a context that have limits."""
    path_of = Paths(context.system)
    for leaf in context.leaves():
        element = leaf.system
        if isinstance(element, Limited) and element.limits:
            port = path_of(element.utilization)
            yield port.removesuffix(".utilization"), element

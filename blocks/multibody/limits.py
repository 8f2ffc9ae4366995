"""What a force element has to keep below a bound, to be what its equations say and not to break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flexure.diagrams.parameters import NumericParameter


@dataclass(frozen=True)
class Limit:
    """A quantity of a force element, and the bound that it should not exceed.

    An element declares its limits with `ForceElement.declare_limits`; `flexure.check_limits` and
    `flexure.doctor` look at them.

    Parameters
    ----------
    quantity : str
        What is bounded, such as ``"stress"``.
    bound : float or NumericParameter
        The bound > 0, a number or a parameter of the element, in ``unit``.
    unit : str
        Unit of both; empty for ratios.
    why : str
        What is wrong beyond it.
    look : str
        What can be done about it.

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

    def bound_in(self, context: Any) -> Any:
        """Return the bound with the values of a context."""
        return self.bound(context) if isinstance(self.bound, NumericParameter) else self.bound

"""Parameters of several blocks that have one value, such as the length of all leaves of a guide."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ContextError, quoted
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.handles import ContextLike, Handle
from flexure.diagrams.values.parameters import NumericParameter


class TiedParameter(Handle):
    """Parameters of several blocks that are set together, and have one value.

    Each of them remains a parameter of its own. Searches, sweeps and tolerances vary all of them by
    the path of this one.

    Parameters
    ----------
    group : str
        Name of the group of blocks.
    members : iterable of NumericParameter
        The parameters, of one name and shape.

    Attributes
    ----------
    members : tuple of NumericParameter
        The parameters.
    shape : tuple of int
        Shape of the value.
    unit : str
        Physical unit.
    """

    def __init__(self, group: str, members: Iterable[NumericParameter]) -> None:
        self.members = tuple(members)
        first = self.members[0]
        super().__init__(first.system, f"{group}.{first.name}", first.index, first.doc)
        self.shape, self.unit = first.shape, first.unit

    what = "tied parameter"

    def __call__(self, context: ContextLike) -> Array:
        """Return the value in ``context``."""
        values = [each(context) for each in self.members]
        if any(not np.array_equal(each, values[0]) for each in values):
            raise ContextError(
                f"Cannot read '{self.full_name}'",
                expected=f"one value of {quoted(each.full_name for each in self.members)}",
                found=", ".join(str(each) for each in values),
                remedy="Read each of them, or set all of them by this path",
            )
        return values[0]

    get = Handle._checked_call

    def set(self, context: ContextLike, value: npt.ArrayLike) -> None:
        """Set all parameters in ``context``.

        Raises
        ------
        ValueRefusedError
            When one of them refuses the value; the context is unchanged.
        """
        for each in self.members:
            each.check(value, f"Cannot set '{self.full_name}'")
        for each in self.members:
            each.set(context, value)

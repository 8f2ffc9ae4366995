"""What is known of a signal without the model that it is from."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from flexure.solvers.tracing.signals import Reader


class StoredSignal(NamedTuple):
    """The description of a signal by a `Reader`, without its values.

    Attributes
    ----------
    shape : tuple of int
        Shape of the signal at one time.
    unit : str
        Physical unit; empty when it is unknown.
    labels : list
        Names of its components, or their numbers.
    doc : str
        One line of documentation.
    """

    shape: tuple[int, ...]
    unit: str
    labels: list[Any]
    doc: str

    @classmethod
    def of(cls, reader: Reader | StoredSignal) -> StoredSignal:
        """Return what a reader says."""
        return cls(reader.shape, reader.unit, reader.labels, reader.doc)

    @classmethod
    def parse(cls, shape: Any, unit: Any, labels: Any, doc: Any) -> StoredSignal:
        """Return what a file says."""
        return cls(tuple(map(int, shape)), str(unit), list(labels), str(doc))

    @property
    def size(self) -> int:
        """Number of components."""
        return prod(self.shape)

"""What is known of a signal without the model that it is from."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from flexure.solvers.tracing.signals import Reader


class StoredSignal(NamedTuple):
    """The description of a signal by a `Reader`, without its values."""

    shape: tuple[int, ...]  # shape of the signal at one time
    unit: str  # physical unit; empty when it is unknown
    labels: list[Any]  # names of its components, or their numbers
    doc: str  # one line of documentation

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

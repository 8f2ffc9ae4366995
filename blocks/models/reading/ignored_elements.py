"""Elements of a model file that the plant ignores: a list of them, and one warning."""

from __future__ import annotations

from collections.abc import Iterable

from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.errors import warn

_TOLD = 5  # kinds of things in a warning


class LeftOut:
    """Collects what is not understood, or what plants do not have."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._kinds: dict[str, list[str]] = {}

    def add(self, text: str, kind: str | None = None) -> None:
        """Add a thing; of those of one kind, a warning has the first one."""
        self._texts.append(text)
        self._kinds.setdefault(text if kind is None else kind, []).append(text)

    def add_all(self, found: Iterable[tuple[str, str]]) -> None:
        """Add kinds and texts."""
        for kind, text in found:
            self.add(text, kind)

    @property
    def texts(self) -> tuple[str, ...]:
        """All of it."""
        return tuple(self._texts)

    def summary(self) -> str:
        """Return one line with an example of each kind, as far as they are few."""
        told = [
            f"{texts[0]} and {len(texts) - 1} more of the kind" if len(texts) > 1 else texts[0]
            for texts in self._kinds.values()
        ]
        more = len(told) - _TOLD
        return "; ".join(told[:_TOLD]) + (f"; and {more} other kinds of things" * (more > 0))

    def tell(self, builder: PlantBuilder) -> None:
        """Hand the list to a builder, and warn of what is in it."""
        builder.left_out = self.texts
        if self._texts:
            warn(
                f"The plant of '{builder.name}' lacks some elements of its file. Left out:"
                f" {self.summary()}. The attribute left_out of the builder lists all."
            )

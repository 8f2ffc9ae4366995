"""Findings of a plausibility check, as a report and as objects."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flexure.diagrams.interface.html import Shown, fold, heading, note
from flexure.diagrams.values.tables import WIDTH, Table


@dataclass(frozen=True)
class Finding:
    """Something far out of proportion.

    Attributes
    ----------
    rule : str
        Name of the rule that found it.
    paths : tuple of str
        Where, the most suspicious place first.
    what : str
        What is there, with its magnitude.
    magnitude : float
        The number that was judged, in ``unit``.
    unit : str
        Its unit; empty for ratios.
    limit : float
        The limit that it is beyond.
    why : str
        Why it is suspicious.
    look : str
        What to look at.
    """

    rule: str
    paths: tuple[str, ...]
    what: str
    magnitude: float
    unit: str
    limit: float
    why: str
    look: str

    @property
    def path(self) -> str:
        """The most suspicious place."""
        return self.paths[0]

    def __str__(self) -> str:
        lines = [f"{', '.join(self.paths)}: {self.what}", f"{self.why}. {self.look}."]
        return "\n".join(
            textwrap.fill(line, WIDTH, initial_indent=indent, subsequent_indent="    ")
            for line, indent in zip(lines, ("- ", "    "), strict=True)
        )


class Checkup(Shown):
    """The report of `flexure.doctor`.

    Going through it gives the findings. It is true when there are none, so that a script can
    ``assert fx.doctor(servo)``; ``print`` tells what was found and what could not be checked.

    Attributes
    ----------
    name : str
        The system that was checked.
    findings : tuple of Finding
        What is far out of proportion.
    unchecked : tuple of str
        Parts that could not be checked, and why.
    linear_notes : tuple of str
        What linear models leave out: blocks that they take for gains, and blocks that pass no
        small changes. This is nothing out of proportion.

    See Also
    --------
    doctor : Check a system.

    Examples
    --------
    >>> import flexure as fx
    >>> checkup = fx.doctor(fx.FirstOrderLag("lag", time_constant=1.0))
    >>> len(checkup)
    0
    """

    def __init__(
        self,
        name: str,
        findings: Sequence[Finding],
        unchecked: Sequence[str],
        linear_notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.findings = tuple(findings)
        self.unchecked = tuple(unchecked)
        self.linear_notes = tuple(linear_notes)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def table(self) -> Table:
        """Return the findings as a table: path, rule, magnitude, unit, limit and what."""
        columns = ("path", "rule", "magnitude", "unit", "limit", "what")
        return Table(columns, [[getattr(each, key) for key in columns] for each in self])

    def _pieces(self) -> Iterator[str]:
        yield heading("Checkup", self.name, "nothing far out of proportion" if self.ok else "")
        for each in self.findings:
            title = f"{', '.join(each.paths)}: {each.what}"
            yield fold(title, note(f"{each.why}. {each.look}."), opened=True)
        yield from map(note, self._notes())

    def _notes(self) -> list[str]:
        return [
            *(f"linear models: {text}" for text in self.linear_notes),
            *(f"not checked: {text}" for text in self.unchecked),
        ]

    def __str__(self) -> str:
        count = "nothing" if self.ok else f"{len(self)} thing{'s'[: len(self) - 1]}"
        head = f"'{self.name}': {count} far out of proportion"
        notes = [textwrap.fill(text, WIDTH, subsequent_indent="    ") for text in self._notes()]
        return "\n".join([head, *map(str, self), *notes])

    def __repr__(self) -> str:
        return str(self)

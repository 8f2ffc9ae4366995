"""Findings of a plausibility check, as a report and as objects."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flexure.diagrams.interface.html import fold, heading, note
from flexure.diagrams.interface.result_classes import Report
from flexure.diagrams.values.tables import WIDTH, Table


@dataclass(frozen=True)
class Finding:
    """An implausible value."""

    rule: str  # name of the rule that reports it
    paths: tuple[str, ...]  # where it is, the most suspicious place first
    what: str  # the value in words, with its magnitude
    magnitude: float  # the number that the rule compares, in ``unit``
    unit: str  # its unit; empty for ratios
    limit: float  # the limit that it exceeds
    why: str  # the reason why it is implausible
    look: str  # what to check

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


def exceeded(
    rule: str,
    paths: Sequence[str],
    what: str,
    number: tuple[float, str, float],
    why: str,
    look: str,
) -> Finding:
    """Return a finding by the number that a rule compares, its unit, and the limit."""
    return Finding(rule, tuple(paths), what, *number, why, look)


class Checkup(Report[Finding]):
    """The report of `flexure.doctor`.

    Iterating over it yields the findings. It is true if there are none, so that scripts can
    ``assert fx.doctor(servo)``; ``print`` shows findings and parts that could not be checked.

    Attributes
    ----------
    name : str
        The system that was checked.
    findings : tuple of Finding
        The implausible values.
    unchecked : tuple of str
        Parts that could not be checked, and why.
    linear_notes : tuple of str
        What linear models neglect: blocks that they replace by gains, and blocks that pass no
        small changes. These are not findings.

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
        self.findings = self._entries = tuple(findings)
        self.unchecked = tuple(unchecked)
        self.linear_notes = tuple(linear_notes)

    def table(self) -> Table:
        """Return the findings as a table: path, rule, magnitude, unit, limit and what."""
        columns = ("path", "rule", "magnitude", "unit", "limit", "what")
        return Table(columns, [[getattr(each, key) for key in columns] for each in self])

    def _pieces(self) -> Iterator[str]:
        yield heading("Checkup", self.name, "no implausible values" if self.ok else "")
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
        head = (
            f"'{self.name}': {len(self) or 'no'} implausible value{'' if len(self) == 1 else 's'}"
        )
        notes = [textwrap.fill(text, WIDTH, subsequent_indent="    ") for text in self._notes()]
        return "\n".join([head, *map(str, self), *notes])

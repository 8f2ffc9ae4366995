"""Utilization of the limits of force elements, at one time, over a run, or along a load path."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from flexure.blocks.multibody.force_elements.limits import Limit, limited_elements
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.html import fold, heading, note
from flexure.diagrams.interface.result_classes import Answer, Report
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import WIDTH, Table
from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded
from flexure.solvers.results.records.result import SimulationResult


@runtime_checkable
class Points(Protocol):
    """Many states of one system, such as those of a load path."""

    system: System

    def context(self, index: int) -> Context:
        """Return a context at a point."""

    def __getitem__(self, signal: Any) -> FloatArray:
        """Return a signal at all points."""


@dataclass(frozen=True)
class Usage:
    """The largest utilization of one limit of a force element."""

    path: str  # the element
    quantity: str  # what is bounded
    # value, bound: the magnitude and its upper bound, in ``unit``.
    value: float
    bound: float
    unit: str  # their unit; empty for ratios
    utilization: float  # the value over the bound
    when: str  # the time in a run or the point of a load path at which it is largest; else empty
    why: str  # the consequence of exceeding the bound
    look: str  # the remedy

    @property
    def is_beyond(self) -> bool:
        """Whether the value exceeds the bound, or is NaN."""
        return not self.utilization <= 1.0

    @property
    def what(self) -> str:
        """The value and its bound, in words."""
        unit = f" {self.unit}" if self.unit else ""
        when = f" {self.when}" if self.when else ""
        return f"{self.quantity}: {self.value:.4g}{unit}{when}, at most {self.bound:.4g}{unit}"

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.what}", f"{self.why}. {self.look}."]
        return "\n".join(
            textwrap.fill(line, WIDTH, initial_indent=indent, subsequent_indent="    ")
            for line, indent in zip(lines, ("- ", "    "), strict=True)
        )


class LimitCheck(Report[Usage], Answer):
    """The report of `check_limits`.

    Iterating over it yields the exceeded limits. It is true if there are none, so that scripts can
    ``assert fx.check_limits(result)``.

    Attributes
    ----------
    name : str
        The system that was checked.
    usages : tuple of Usage
        All limits of all elements, the largest utilization first.
    notes : dict of str to list of str
        What elements do not model and matters there, such as creep, with the paths of elements.

    See Also
    --------
    check_limits : Check a context, a run or a path.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> check = fx.check_limits(door, door.create_default_context())
    >>> print(check)
    'door': no element has limits
    """

    _function = "check_limits"

    def __init__(
        self, name: str, usages: Sequence[Usage], notes: dict[str, list[str]] | None = None
    ) -> None:
        self.name, self.notes = name, notes or {}
        self.usages = tuple(
            sorted(usages, key=lambda each: -np.nan_to_num(each.utilization, nan=np.inf))
        )
        self._entries = tuple(each for each in self.usages if each.is_beyond)

    @property
    def beyond(self) -> tuple[Usage, ...]:
        """The limits that are exceeded."""
        return self._entries

    def table(self) -> Table:
        """Return all limits: path, quantity, value, bound, unit, utilization and when."""
        columns = ("path", "quantity", "value", "bound", "unit", "utilization", "when")
        return Table(columns, [[getattr(each, key) for key in columns] for each in self.usages])

    def _head(self) -> str:
        if not self.usages:
            return "no element has limits"
        return f"{len(self)} of {len(self.usages)} limits exceeded"

    def _pieces(self) -> Iterator[str]:
        yield heading("Limits", self.name, self._head())
        for each in self:
            yield fold(f"{each.path}: {each.what}", note(f"{each.why}. {each.look}."), opened=True)
        yield from map(note, self._noted())
        yield from self.table()._pieces()

    def _noted(self) -> list[str]:
        return [f"{quoted(paths)}: {text}" for text, paths in self.notes.items()]

    def __str__(self) -> str:
        most = (
            "" if not self.usages or not self.ok else f"; the most used is {self.usages[0].path}: "
        )
        if most:
            most += f"{self.usages[0].quantity} by {100.0 * self.usages[0].utilization:.0f} %"
        noted = [
            textwrap.fill(f"Note: {each}.", WIDTH, subsequent_indent="    ")
            for each in self._noted()
        ]
        return "\n".join([f"'{self.name}': {self._head()}{most}", *map(str, self), *noted])


def check_limits(
    of: System | SimulationResult | Points | Any, context: Context | None = None
) -> LimitCheck:
    """Check force elements against their limits of stress, angles, slenderness etc.

    Parameters
    ----------
    of : System, SimulationResult or LoadPath
        A block or diagram, a run, or a load path. Over runs and paths, the worst counts.
    context : Context, optional
        For a system, the values to check, a root context; a default context when omitted.

    Returns
    -------
    LimitCheck
        The exceeded limits with values, times and remedies; true if there are none.

    Raises
    ------
    DeclarationError
        If ``of`` is none of these, or a context is passed together with a run or a path.
    ContextError
        If the context is not a root context of the system.
    EvaluationError
        If an element cannot be evaluated, such as one with an input that is not fixed.

    See Also
    --------
    doctor : Check a whole model for mistakes.

    Notes
    -----
    Flexures declare their limits; your own elements do so in ``declare_limits``. Simulations
    neither stop nor warn at a limit: beyond it the equations still have a solution, but it does not
    describe the element. Statics warn if one element exceeds its limits so far that equilibria may
    be wrong, such as a beam at three times its limits. Each element has the output
    ``utilization``, which you can plot, or watch with `StopWhen`.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage")
    >>> lever = builder.add_body("lever", fx.SpatialInertia.thin_rod(0.1, length=0.1, axis="x"))
    >>> pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, lever, axis=(0, 0, 1)))
    >>> notch = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)
    >>> steel = fx.Material.common("structural steel S235")
    >>> hinge = fx.NotchHinge("hinge", builder.world, lever, notch=notch, material=steel)
    >>> hinge = builder.add_force_element(hinge)
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> pivot.angle.set(context, 0.016)
    >>> print(fx.check_limits(plant, context))
    'stage': 1 of 3 limits exceeded
    - hinge: stress over yield strength: 4.658e+08 Pa, at most 2.35e+08 Pa
        It yields there. Make it thinner where it bends, or longer, or move it less.
    """
    attempt = "Cannot check limits"
    if isinstance(of, System):
        start = start_context(of, context, f"{attempt} of '{of.label}'")
        return LimitCheck(of.label, list(usages(start)), _notes(start))
    if context is not None or not isinstance(of, SimulationResult | Points):
        given = " ".join(f"{of!r:.200}".split())
        raise DeclarationError(
            attempt,
            expected="a system with or without a context, a result or a load path",
            found=given if context is None else f"{given} with a context",
        )
    at = of.context if isinstance(of, SimulationResult) else of.context(0)
    found: list[Usage] = []
    for path, element in limited_elements(at):
        shares = np.reshape(of[element.utilization], (-1, len(element.limits)))
        for k, limit in enumerate(element.limits):
            worst = int(np.argmax(shares[:, k]))  # the first NaN, if there is one
            if isinstance(of, SimulationResult):
                there, when = at, f"at t = {of.time[worst]:.6g} s"
            else:
                there, when = of.context(worst), f"at point {worst}"
            found.append(_usage(path, limit, there, shares[worst, k], when))
    return LimitCheck(of.system.label, found, _notes(at))


def _notes(context: Context) -> dict[str, list[str]]:
    """Return the notes of all elements, each with the paths of the elements that have it."""
    notes: dict[str, list[str]] = {}
    for path, element in limited_elements(context):
        for each in element.notes(context):
            notes.setdefault(each, []).append(path)
    return notes


def usages(context: Context) -> Iterator[Usage]:
    """Yield the utilization of each limit of the elements of a context."""
    for path, element in limited_elements(context):
        shares = element.utilization.eval(context)
        for limit, share in zip(element.limits, shares, strict=True):
            yield _usage(path, limit, context, share, "")


def _usage(path: str, limit: Limit, context: Context, share: float, when: str) -> Usage:
    bound = float(limit.bound_in(context))
    share = float(share)
    return Usage(
        path, limit.quantity, share * bound, bound, limit.unit, share, when, limit.why, limit.look
    )


def exceeded_limits(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find force elements beyond the limits that they declare.

    Examples are the yield strength for the stress of a flexure and the angle up to which its
    equations hold; the docstrings of the elements give the sources.
    """
    for each in usages(diagnosed.context):
        if each.is_beyond:
            yield exceeded(
                "limit",
                (each.path,),
                each.what,
                (each.value, each.unit, each.bound),
                each.why,
                each.look,
            )


RULES = (exceeded_limits,)

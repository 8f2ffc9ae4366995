"""Modes: the free motions of a system (vibration, decay, drift) from its exact linear model."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks import Plant
from flexure.diagrams.checks.arguments import is_whole, require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.updates import require_start
from flexure.diagrams.drawing.formats.new_figures import PlottedInPanels
from flexure.diagrams.interface.html import heading, note
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.result_classes import Answer, Entries
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.analysis.equations.equations import Equations, refuse_sampled, state_names
from flexure.solvers.analysis.equations.tangents import linear_notes, require_holding
from flexure.solvers.analysis.forces_at_rest.misleading_results import warn_of_hidden_motions
from flexure.solvers.analysis.modes.minimal_coordinates import MinimalCoordinates
from flexure.solvers.analysis.modes.modal_energies import ModalEnergies
from flexure.solvers.analysis.modes.spectrum import Branch, ComplexArray, branches

if TYPE_CHECKING:
    from flexure.solvers.analysis.modes import mode_plots
    from flexure.solvers.analysis.modes.mode_plots import Shape
else:
    mode_plots = Deferred("flexure.solvers.analysis.modes.mode_plots")

MODE_COLUMNS = ("mode", "kind", "frequency", "damping_ratio", "time_constant", "moves")
_ENERGY_COLUMNS = ("mode", "path", "kinetic_energy", "strain_energy", "dissipated_energy")
_SHOWN = 0.05  # share that a table mentions
_FEW = 3  # shares that it mentions if all are smaller
_ROUNDING = 1e-12  # of what cancels in a row of exact derivatives, and
_DIFFERENCES = 1e-6  # of central differences
_AT_REST = 1e-6  # of the terms that balance in a derivative
_ROWS = 40  # modes in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Mode:
    """One mode of free motion: all states in a fixed proportion.

    ``kind`` is one of

    - ``"oscillation"``: a pair of complex poles, which may also grow (flutter);
    - ``"overdamped"``: two real poles of a mechanism with one shape, both stable;
    - ``"decay"`` and ``"growth"``: one real pole, as of a lag, a controller or a pendulum that
      stands;
    - ``"rigid"``: a free motion of a mechanism, which nothing holds: a pole at zero;
    - ``"integrator"``: another state that may have any value: a pole at zero.

    Attributes
    ----------
    kind : str
        What it is.
    poles : tuple of complex
        The poles λ in rad/s: one, or two of an oscillation or an overdamped mode.
    shape : dict of complex
        Amplitude of each joint coordinate and of each other state, by path. A mechanism that moves
        has the modal mass 1: in kg and kg m², ``φᴴ M φ = 1`` with its mass matrix M.
    vector : ndarray, shape (n,)
        The same as a small motion of all states.

    See Also
    --------
    modes : Find the modes of a system.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> mode = fx.modes(builder.build())[0]
    >>> round(2.0 * np.pi * mode.frequency, 6), round(mode.damping_ratio, 6)
    (10.0, 0.05)
    """

    kind: str
    poles: tuple[complex, ...]
    shape: dict[str, complex]
    vector: ComplexArray
    _branch: Branch
    _modes: Modes

    @property
    def frequency(self) -> float:
        """Natural frequency in Hz: ``ω / 2π`` with ``ω² = λ₁ λ₂``, or ``ω = |λ|`` of one pole."""
        return self._branch.speed / (2.0 * np.pi)

    @property
    def damped_frequency(self) -> float:
        """Damped natural frequency in Hz; zero if the mode does not oscillate."""
        return abs(self.poles[0].imag) / (2.0 * np.pi)

    @property
    def damping_ratio(self) -> float:
        """``ζ = -(λ₁ + λ₂) / 2 ω``: negative if it grows, above 1 if overdamped, NaN at zero.

        It is 1 for one real pole that is stable.
        """
        if self.kind in ("rigid", "integrator"):
            return float("nan")
        return 0.0 - sum(self.poles).real / len(self.poles) / self._branch.speed

    @property
    def time_constants(self) -> tuple[float, ...]:
        """``-1 / Re λ`` in s, of an overdamped mode two: negative if it grows, else infinite."""
        poles = self.poles[: 1 if self.kind == "oscillation" else None]
        return tuple(-1.0 / pole.real if pole.real else float("inf") for pole in poles)

    @property
    def participation(self) -> dict[str, float]:
        """Participation of each joint coordinate and each other state; the sum is 1.

        The shares are products of right and left eigenvectors, so that units do not matter.
        """
        shares = self._branch.participation
        found = dict.fromkeys(self.shape, 0.0)
        for name, share in zip(self._modes.coordinates.names, shares, strict=True):
            found[name] += float(share)
        return found

    @cached_property
    def bodies(self) -> dict[str, float]:
        """The share of each body, and of each rotor, in the kinetic energy, by path."""
        return self._modes.energies.bodies(self._branch)

    @cached_property
    def strain_energy(self) -> dict[str, float]:
        """The share of each force element, and of ``gravity``, in the potential energy, by path.

        It is that of second order in the motion. Shares are negative where something pushes away
        from the equilibrium, as gravity does in a pendulum that stands; the sum of their magnitudes
        is 1. Forces of motors and other inputs count as ``"inputs"``, with what they are in phase
        with the motion, as of a spring.
        """
        return self._modes.energies.strain(self._branch)

    @cached_property
    def dissipated_energy(self) -> dict[str, float]:
        """The share of each force element, and of the damping of joints, in the losses, by path.

        Shares are negative where something drives the motion; the sum of their magnitudes is 1.
        Forces of motors and other inputs count as ``"inputs"``, with what they are in phase with
        the rates, as of a damper.
        """
        return self._modes.energies.dissipation(self._branch)

    def __repr__(self) -> str:
        if self.kind in ("rigid", "integrator"):
            return f"<Mode: {self.kind}>"
        constants = " and ".join(f"{constant:.4g} s" for constant in self.time_constants)
        if self.kind in ("decay", "growth"):
            return f"<Mode: {self.kind}, time constant {constants}>"
        text = f"{self.kind}, {self.frequency:.4g} Hz, damping ratio {self.damping_ratio:.4g}"
        plural = "s" if len(self.time_constants) > 1 else ""
        return f"<Mode: {text}, time constant{plural} {constants}>"


class Modes(Entries[Mode], Answer, PlottedInPanels):
    """The modes of a system around one context: a sequence of `Mode` objects.

    Free motions come first, then integrators, then the others by their natural frequencies.

    Their figure has natural frequencies and damping ratios.

    Attributes
    ----------
    system : System
        What was asked for.
    context : Context
        The values around which it moves; a copy.
    how : str
        Whether the linear model is exact or made of central differences, and why.
    coordinates : MinimalCoordinates
        The displacements, rates and other states that shapes are made of.
    branches : tuple of Branch
        The modes in these coordinates, as invariant subspaces.
    notes : tuple of str
        Which blocks pass no small changes at this point, and which are linearized as gains.

    See Also
    --------
    modes : Find them.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> found = fx.modes(builder.build())
    >>> found
    <Modes of 'door': 1>
    >>> [round(mode.damping_ratio, 6) for mode in found]
    [0.05]
    """

    def __init__(
        self, context: Context, coordinates: MinimalCoordinates, found: tuple[Branch, ...], how: str
    ) -> None:
        self.system: System = context.system
        self.context = context
        self.coordinates = coordinates
        self.branches = found
        self.how = how
        self.notes = linear_notes(context.leaves())
        self._entries = tuple(self._mode(branch) for branch in found)

    def _mode(self, branch: Branch) -> Mode:
        shape: dict[str, complex] = {}
        for name, amplitude in zip(self.coordinates.names, branch.shape, strict=True):
            shape.setdefault(name, complex(amplitude))  # displacements come before their rates
        outwards = self.coordinates.outwards
        vector = outwards @ branch.shape.real + 1j * (outwards @ branch.shape.imag)
        return Mode(branch.kind, branch.poles, shape, vector, branch, self)

    def __getitem__(self, index: int) -> Mode:
        attempt = f"Cannot find a mode of '{self.system.label}'"
        return self._entries[checked_number(index, len(self), "modes", attempt)]

    @property
    def frequencies(self) -> FloatArray:
        """The natural frequencies in Hz."""
        return np.array([mode.frequency for mode in self])

    @property
    def damping_ratios(self) -> FloatArray:
        """The damping ratios; NaN for poles at zero."""
        return np.array([mode.damping_ratio for mode in self])

    @cached_property
    def energies(self) -> ModalEnergies:
        """Where the energies of the modes are."""
        fastest = max((branch.speed for branch in self.branches), default=0.0)
        return ModalEnergies(self.context, self.coordinates, fastest)

    def table(self) -> Table:
        """Return a table with one row for each mode.

        Its columns are the number of the mode, ``kind``, ``frequency`` in Hz, ``damping_ratio``,
        ``time_constant`` in s (the longer one of two; None where it is infinite), and in words what
        ``moves``: the coordinates and states that participate with at least 5 %, or the three that
        participate most if all have less.
        """
        rows = [
            (
                number,
                mode.kind,
                mode.frequency,
                None if np.isnan(mode.damping_ratio) else mode.damping_ratio,
                None if np.isinf(mode.time_constants[0]) else mode.time_constants[0],
                _in_words(mode.participation),
            )
            for number, mode in enumerate(self)
        ]
        return Table(MODE_COLUMNS, rows)

    def energy_table(self) -> Table:
        """Return a table of energy shares, one row for each mode and each element with a share.

        Its columns are the number of the mode, the ``path`` of a body, an element or what else has
        a share, and ``kinetic_energy``, ``strain_energy`` and ``dissipated_energy``; None for none.
        """
        rows = []
        for number, mode in enumerate(self):
            shares = (mode.bodies, mode.strain_energy, mode.dissipated_energy)
            paths = dict.fromkeys(path for parts in shares for path in parts)
            rows += [(number, path, *(part.get(path) for part in shares)) for path in paths]
        return Table(_ENERGY_COLUMNS, rows)

    _figure = mode_plots.plot_modes
    plot_mechanism = mode_plots.plot_shape
    animate = mode_plots.animate_shape

    def _shape_of(self, index: int, plant: Plant | None, verb: str = "show") -> Shape:
        from flexure.solvers.analysis.modes.mode_plots import mode_shape

        attempt = f"Cannot {verb} a mode of '{self.system.label}'"
        return mode_shape(self, self[index], plant, attempt)

    def _pieces(self) -> Iterator[str]:
        yield heading("Modes", self.system.label, self.how)
        yield self.table().to_html(_ROWS)
        yield from map(note, self.notes)

    def __str__(self) -> str:
        return "\n".join([str(self.table()), *(f"note: {text}" for text in self.notes)])

    def __repr__(self) -> str:
        return f"<Modes of '{self.system.label}': {len(self)}>"


@in_one_thread
def modes(system: System, context: Context | None = None) -> Modes:
    """Find the natural frequencies, damping ratios and mode shapes of a system.

    Parameters
    ----------
    system : System
        A plant, or any other diagram or block with continuous states.
    context : Context, optional
        Operating point, a root context, which should be an equilibrium; it is not changed. A
        default context when omitted.

    Returns
    -------
    Modes

    Warns
    -----
    UserWarning
        When the system is not at rest, so that what is linearized is no equilibrium; or when modes
        count as free and derivatives are differences, which cannot tell them from slow ones; or
        when a `PlanarJoint` beside a flexure holds what the flexure alone would let vibrate.

    Raises
    ------
    DeclarationError
        When it is no system, such as a builder whose ``build()`` is still to be called.
    ValueRefusedError
        When it has no continuous states.
    EvaluationError
        When something is not finite, an input port is not fixed, a sampled block follows the
        motion, so that the diagram has no continuous equations, or a mechanism moves that has
        constraints between velocities.

    See Also
    --------
    track_modes : Follow modes over a parameter.
    linearize : The linear model itself.
    equilibrium : Find the operating point.

    Notes
    -----
    The modes are eigenvalues λ and eigenvectors of the exact linear model, ``ẋ = A x``. Mechanisms
    are described by as many displacements as they have velocities: quaternions turn in three ways,
    and locked joints do not move. Only motions therefore have poles.

    A mode counts as free when its stiffness is less than 1e-12 of the terms that cancel in it,
    joint by joint, so that the rest of the diagram has no influence. Where several modes have equal
    poles, any combination of them is a mode, too; their shapes are chosen orthogonal in the mass
    matrix, each next to one joint coordinate.

    Discrete states stay what they are. Two real poles of a mechanism that have one shape are one
    overdamped mode. Where controllers or other blocks take part, each real pole is a mode.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("arm", gravity=(0.0, 0.0, 0.0))
    >>> bar = builder.add_body("bar", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, bar, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> mode = fx.modes(builder.build())[0]
    >>> mode
    <Mode: oscillation, 1.592 Hz, damping ratio 0.05, time constant 2 s>
    >>> mode.strain_energy, mode.bodies
    ({'spring': 1.0}, {'bar': 1.0})
    """
    require_system(system, "Cannot find the modes")
    attempt = f"Cannot find the modes of '{system.label}'"
    start = start_context(system, context, attempt)
    refuse_sampled(start, attempt)
    require_start(start)
    require_holding(start, attempt)
    if not start.store.layout.num_states:
        raise ValueRefusedError(
            attempt,
            expected="a system with continuous states, which can move by itself",
            found="none of its blocks has any",
        )
    warn_of_hidden_motions(start, f"The modes of '{system.label}' are")
    equations = Equations(start.clone(), shares=True, as_gain=True)
    point = equations.point()
    rates, slopes = equations.values(point), equations.jacobian(point)
    _refuse_not_finite(attempt, start, rates, slopes)
    coordinates = MinimalCoordinates(start)
    terms = np.abs(slopes) @ np.abs(point) + 1.0
    worst = int(np.argmax(np.abs(rates) / terms))
    if abs(rates[worst]) > _AT_REST * terms[worst]:
        warn(
            f"The modes of '{system.label}' are those of a linear model at a point where it is not "
            f"at rest: {state_names(start)[worst]} has a rate of {rates[worst]:.6g}. Start from "
            f"equilibrium(...).context"
        )
    found = branches(
        coordinates.inwards @ slopes @ coordinates.outwards,
        coordinates,
        _ROUNDING if equations.is_exact_by_states else _DIFFERENCES,
    )
    free = sum(branch.kind == "rigid" for branch in found)
    if free and not equations.is_exact_by_states:
        warn(
            f"Free modes of '{system.label}' may be slow modes ({free} of"
            f" {len(found)}): their remaining stiffness is below {_DIFFERENCES:g} of the terms"
            f" that cancel in it, which is the error of {equations.how}"
        )
    return Modes(start, coordinates, tuple(found), equations.how)


def _in_words(shares: dict[str, float]) -> str:
    """Return the largest shares as text."""
    largest = sorted(shares.items(), key=lambda item: -item[1])
    told = [item for item in largest if item[1] >= _SHOWN] or largest[:_FEW]
    return ", ".join(f"{path} {100.0 * share:.0f} %" for path, share in told)


def checked_number(number: object, count: int, what: str, attempt: str) -> int:
    """Return the number of an item, which may count from the end."""
    fits = is_whole(number) and number in range(-count, count)
    require(fits, number, attempt, f"the number of one of {count} {what}")
    return operator.index(number)  # type: ignore[arg-type]


def _refuse_not_finite(
    attempt: str, context: Context, rates: FloatArray, slopes: FloatArray
) -> None:
    """Raise when a rate or a derivative is not finite, and name the first one."""
    names = state_names(context)
    bad, steep = np.flatnonzero(~np.isfinite(rates)), np.argwhere(~np.isfinite(slopes))
    if bad.size:
        found = f"the rate of {names[bad[0]]} = {rates[bad[0]]}"
    elif steep.size:
        row, column = steep[0]
        slope = slopes[row, column]
        found = f"{slope} as the derivative of the rate of {names[row]} by {names[column]}"
    else:
        return
    raise EvaluationError(
        attempt,
        expected="finite rates and slopes",
        found=found,
        remedy="Find the modes at another point",
    )

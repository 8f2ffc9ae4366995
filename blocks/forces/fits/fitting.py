"""Constants of hinges and bushings from measured torques and forces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.coefficients.mounts import BushingConstants
from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.blocks.forces.fits.law_fits import (
    Bounds,
    LawFit,
    LinearFit,
    fitted_law,
    read_constants,
    samples_of,
)
from flexure.blocks.forces.fits.least_squares import (
    Loss,
    check_options,
    effective,
    estimate,
    given_deviations,
    require_enough,
    warn_of,
)
from flexure.blocks.forces.on_joints.door_hinge import DoorHingeConfig, HingeLaw
from flexure.diagrams.checks.arguments import items_of, require
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.values.arrays import FloatArray, as_numbers

#: Displacements, their rates, and the forces measured at them, each of shape (n, 3).
Samples: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]

_LOWER = {each.name: each.metadata["lower"] for each in fields(DoorHingeConfig)}
_LINEAR_CONSTANTS = tuple(n for n in _LOWER if n not in ("catch_width", "motion_threshold"))


def fit_hinge(
    angles: npt.ArrayLike,
    rates: npt.ArrayLike,
    torques: npt.ArrayLike,
    config: DoorHingeConfig | None = None,
    *,
    fitted: Iterable[str] = _LINEAR_CONSTANTS,
    bounds: Bounds | None = None,
    logarithmic: Iterable[str] = (),
    deviations: float | Mapping[str, float] | None = None,
    loss: Loss = "linear",
    max_evaluations: int | None = None,
) -> tuple[DoorHingeConfig, FitReport]:
    """Fit the constants of a door hinge to torques measured at angles and rates.

    Minimizes ``½ Σ ρ(((torque - HingeLaw(...).torque(angle, rate))/σ)²)``. No constant but
    ``spring_zero_angle_rad`` becomes negative.

    Parameters
    ----------
    angles : array_like, shape (n,)
        Angles of the door in rad.
    rates : array_like, shape (n,)
        Their rates in rad/s.
    torques : array_like, shape (n,)
        Torques of the hinge on the door in N m, positive towards greater angles. To move the door
        slowly against the hinge, you apply the opposite torques.
    config : DoorHingeConfig, optional
        Where the fit starts, and the values of what is not fitted; the default hinge when omitted.
        Constants to fit should have their typical size here; 1 replaces 0.
    fitted : iterable of str, optional
        Names of the constants to fit. By default all but ``catch_width`` and ``motion_threshold``:
        these two give the torque its shape, and a fit of them has to start within a factor of a
        few.
    bounds, logarithmic, loss, max_evaluations
        As for `fit_constants`. Bounds narrow those that the constants have in any case.
    deviations : float or mapping, optional
        Standard deviation σ of the errors of the torques in N m; as a mapping, by the name
        "torques". When omitted, it is found from the residuals.

    Returns
    -------
    config : DoorHingeConfig
        The fitted hinge.
    report : FitReport
        Residuals in N m, covariance, and what the data do not determine.

    Raises
    ------
    ValueRefusedError
        When samples differ in number, are too few or not finite, or when a constant of ``config``
        that must not be negative is.
    UnknownNameError
        When a hinge has no such constant.
    EvaluationError
        When the fit does not converge.

    Warns
    -----
    UserWarning
        When the data do not determine a constant, for instance the catch torque while the door
        stays open. It keeps its value.

    See Also
    --------
    fit_constants : Fit constants of a law to measured values by nonlinear least squares.

    Examples
    --------
    >>> q, rate = np.linspace(0.0, 1.5, 200), 0.01 * np.cos(np.arange(200.0))
    >>> made = DoorHingeConfig(spring_constant=2.0, viscous_friction=0.3)
    >>> torque = HingeLaw(**asdict(made)).torque(q, rate)
    >>> found, report = fit_hinge(q, rate, torque)
    >>> round(found.spring_constant, 6), round(found.viscous_friction, 6)
    (2.0, 0.3)
    """
    q = samples_of(angles, "angles")
    rate = samples_of(rates, "rates", q.shape)
    torque = samples_of(torques, "torques", q.shape)
    config = DoorHingeConfig() if config is None else config
    fits = isinstance(config, DoorHingeConfig)
    require(fits, config, "Cannot fit a hinge", "config to be a DoorHingeConfig or None")
    declared = {name: (lower, np.inf) for name, lower in _LOWER.items()}
    given, unknowns = read_constants(asdict(config), fitted, bounds, logarithmic, declared)
    problem = LawFit(
        "torques",
        "N m",
        lambda **constants: HingeLaw(**constants).torque(q, rate),
        torque,
        given,
        unknowns,
    )
    report = fitted_law(problem, deviations, loss, max_evaluations)
    return DoorHingeConfig(**report.constants), report


def fit_bushing(
    *,
    torsion: Samples | None = None,
    translation: Samples | None = None,
    base: BushingConstants | None = None,
    fitted: Iterable[str] | None = None,
    bounds: Bounds | None = None,
    logarithmic: Iterable[str] = (),
    deviations: float | Mapping[str, float] | None = None,
    loss: Loss = "linear",
    max_evaluations: int | None = None,
) -> tuple[BushingConstants, dict[str, FitReport]]:
    """Fit the constants of a bushing to loads measured at displacements and rates.

    Each axis by itself, ``τ = -(k q + d q̇)`` or ``f = -(k x + d ẋ)``, by least squares, which are
    linear unless an option says otherwise, with k >= 0 and d >= 0.

    Parameters
    ----------
    torsion : tuple of array_like, each of shape (n, 3), optional
        Roll, pitch and yaw angles q in rad, their rates q̇ in rad/s, and the gimbal torques τ of the
        bushing on frame C in N m. A torque t of the bushing on C, expressed in A, has the gimbal
        torques ``N⁻ᵀ t`` with N from q̇ = N ω.
    translation : tuple of array_like, each of shape (n, 3), optional
        Displacements x of C from A in m, their rates ẋ in m/s, and the forces f of the bushing on C
        in N, all in the halfway frame B.
    base : BushingConstants, optional
        Constants that are not measured, not fitted, or have no effect on what is; zeros when
        omitted.
    fitted : iterable of str, optional
        Names of the constants to fit, such as "torque_stiffness[0]" and "force_damping[2]"; all
        that are measured when omitted.
    bounds, logarithmic, loss, max_evaluations
        As for `fit_constants`. Bounds are by these names, and none is below zero.
    deviations : float or mapping, optional
        Standard deviations of the errors of the gimbal torques in N m and the forces in N: one for
        all, or by axis. When omitted, they are found from the residuals.

    Returns
    -------
    constants : BushingConstants
        The fitted bushing.
    reports : dict of str to FitReport
        One for each axis of which something was fitted, "q0", "q1", "q2" and "x", "y", "z".

    Raises
    ------
    ValueRefusedError
        When nothing is measured, or samples differ in shape, are too few or not finite.
    UnknownNameError
        When a constant does not exist, or was not measured.

    Warns
    -----
    UserWarning
        When the data do not determine a constant: of an axis that did not move, or moved at a rate
        in proportion to its displacement.

    See Also
    --------
    fit_dynamic_stiffness : Fit one direction of a `GeneralBushing` to measured dynamic stiffness.

    Notes
    -----
    A constant that comes out at its bound of zero together with large residuals tells of forces
    with the wrong sign.

    Examples
    --------
    >>> phases = np.outer(np.arange(50.0), [0.1, 0.2, 0.3])
    >>> x, rate = np.sin(phases), np.cos(phases)
    >>> bushing, reports = fit_bushing(translation=(x, rate, -400.0 * x - 5.0 * rate))
    >>> [round(k, 6) for k in bushing.force_stiffness], [round(d, 6) for d in bushing.force_damping]
    ([400.0, 400.0, 400.0], [5.0, 5.0, 5.0])
    """
    if torsion is None and translation is None:
        raise ValueRefusedError(
            "Cannot fit a bushing", expected="samples of torsion or translation", found="neither"
        )
    base = BushingConstants() if base is None else base
    fits = isinstance(base, BushingConstants)
    require(fits, base, "Cannot fit a bushing", "base to be BushingConstants or None")
    whole = asdict(base)
    columns: dict[str, dict[str, FloatArray]] = {}  # of each axis, by constant
    forces: dict[str, FloatArray] = {}
    units: dict[str, str] = {}
    start: dict[str, float] = {}
    for k, d, axes, unit, samples in (
        ("torque_stiffness", "torque_damping", ("q0", "q1", "q2"), "N m", torsion),
        ("force_stiffness", "force_damping", ("x", "y", "z"), "N", translation),
    ):
        if samples is None:
            continue
        parts = _three_axes(samples)
        for i, axis in enumerate(axes):
            position, rate, forces[axis] = (part[:, i] for part in parts)
            columns[axis] = {f"{k}[{i}]": -position, f"{d}[{i}]": -rate}
            start |= {f"{name}[{i}]": whole[name][i] for name in (k, d)}
            units[axis] = unit
    declared = dict.fromkeys(start, (0.0, np.inf))
    given, unknowns = read_constants(start, fitted, bounds, logarithmic, declared)
    wanted = {unknown.name: unknown for unknown in unknowns}
    measured = [axis for axis, parts in columns.items() if wanted.keys() & parts.keys()]
    attempt = "Cannot fit a bushing"
    sigma = given_deviations(measured, deviations, attempt)
    evaluations = check_options(sigma, loss, max_evaluations, attempt)
    reports = {}
    for number, axis in enumerate(measured):
        own = {name: given[name] for name in columns[axis]}
        chosen = [wanted[name] for name in own if name in wanted]
        problem = LinearFit(axis, units[axis], columns[axis], forces[axis], own, chosen)
        reports[axis] = estimate(
            problem,
            own,
            effective(problem),
            deviations=None if sigma is None else sigma[number : number + 1],
            loss=loss,
            max_evaluations=evaluations,
        )
        given |= reports[axis].constants
    warn_of(*reports.values())
    found = {
        name: tuple(given.get(f"{name}[{i}]", value) for i, value in enumerate(values))
        for name, values in whole.items()
    }
    return BushingConstants(**found), reports


def _three_axes(samples: Samples) -> list[FloatArray]:
    """Return displacements, rates and forces, enough of them for two constants."""
    names = ("displacements", "rates", "forces")
    attempt, expected = "Cannot fit a bushing", f"three arrays, {quoted(names)}"
    parts = items_of(samples, expected, attempt)
    if len(parts) != len(names):
        raise ValueRefusedError(attempt, expected=expected, found=f"{len(parts)} arrays")
    shape = (len(np.atleast_1d(as_numbers(parts[0], f"{attempt} to displacements"))), 3)
    arrays = [samples_of(part, name, shape) for part, name in zip(parts, names, strict=True)]
    require_enough(len(arrays[0]), 2, attempt)
    return arrays

"""Constants of hinges and bushings from measured torques and forces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.hinge_constants import DoorHingeConfig
from flexure.blocks.forces.hinge_law import HingeLaw
from flexure.blocks.forces.least_squares import (
    FitReport,
    fit_linear,
    fit_nonlinear,
    require_enough,
    samples_of,
    warn_of,
)
from flexure.blocks.forces.mounts import BushingConstants
from flexure.diagrams.arguments import items_of, require
from flexure.diagrams.errors import ValueRefusedError, quoted
from flexure.diagrams.values import FloatArray, as_numbers

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
) -> tuple[DoorHingeConfig, FitReport]:
    """Fit the constants of a door hinge to torques measured at angles and rates.

    Minimizes ``Σ (torque - HingeLaw(...).torque(angle, rate))²``. No constant but
    ``spring_zero_angle_rad`` becomes negative.

    Parameters
    ----------
    angles : array_like, shape (n,)
        Angles of the door in rad.
    rates : array_like, shape (n,)
        Their rates in rad/s.
    torques : array_like, shape (n,)
        Torques of the hinge on the door in N m, positive towards greater angles. Who moves the door
        slowly against the hinge applies the opposite ones.
    config : DoorHingeConfig, optional
        Where the fit starts, and the values of what is not fitted; the default hinge when omitted.
        What is to be fitted should have its typical size here; 1 stands in for 0.
    fitted : iterable of str, optional
        Names of the constants to fit. By default all but ``catch_width`` and ``motion_threshold``:
        these two give the torque its shape, and a fit of them has to start within a factor of a
        few.

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
    start = asdict(config)
    not_negative = {name: (lower, np.inf) for name, lower in _LOWER.items() if lower > -np.inf}
    report = fit_nonlinear(
        lambda **constants: HingeLaw(**constants).torque(q, rate),
        torque,
        start,
        fitted,
        not_negative,
    )
    warn_of(report.unidentified)
    return DoorHingeConfig(**report.constants), report


def fit_bushing(
    *,
    torsion: Samples | None = None,
    translation: Samples | None = None,
    base: BushingConstants | None = None,
) -> tuple[BushingConstants, dict[str, FitReport]]:
    """Fit the constants of a bushing to torques and forces measured at displacements and rates.

    Each axis by itself, ``τ = -(k q + d q̇)`` or ``f = -(k x + d ẋ)``, by linear least squares with
    k >= 0 and d >= 0.

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
        Constants that are not measured, or have no effect on what is; zeros when omitted.

    Returns
    -------
    constants : BushingConstants
        The fitted bushing.
    reports : dict of str to FitReport
        One for each axis that was measured, "q0", "q1", "q2" and "x", "y", "z".

    Raises
    ------
    ValueRefusedError
        When nothing is measured, or samples differ in shape, are too few or not finite.

    Warns
    -----
    UserWarning
        When the data do not determine a constant: of an axis that did not move, or moved at a rate
        in proportion to its displacement.

    Notes
    -----
    A constant that comes out at its bound of zero together with large residuals tells of forces
    with the wrong sign.

    Examples
    --------
    >>> phases = np.outer(np.arange(50.0), [0.1, 0.2, 0.3])
    >>> x, rate = np.sin(phases), np.cos(phases)
    >>> bushing, reports = fit_bushing(translation=(x, rate, -400.0 * x - 5.0 * rate))
    >>> [round(k, 6) for k in bushing.kxyz], [round(d, 6) for d in bushing.dxyz]
    ([400.0, 400.0, 400.0], [5.0, 5.0, 5.0])
    """
    if torsion is None and translation is None:
        raise ValueRefusedError(
            "Cannot fit a bushing", expected="samples of torsion or translation", found="neither"
        )
    base = BushingConstants() if base is None else base
    fits = isinstance(base, BushingConstants)
    require(fits, base, "Cannot fit a bushing", "base to be BushingConstants or None")
    constants = asdict(base)
    reports = {}
    for k, d, axes, samples in (
        ("k012", "d012", ("q0", "q1", "q2"), torsion),
        ("kxyz", "dxyz", ("x", "y", "z"), translation),
    ):
        if samples is None:
            continue
        displacements, rates, forces = _three_axes(samples)
        for i, axis in enumerate(axes):
            reports[axis] = fit_linear(
                {f"{k}[{i}]": constants[k][i], f"{d}[{i}]": constants[d][i]},
                -np.stack([displacements[:, i], rates[:, i]], axis=1),
                forces[:, i],
            )
        found = [list(reports[axis].constants.values()) for axis in axes]
        constants[k], constants[d] = np.transpose(found)
    warn_of(name for report in reports.values() for name in report.unidentified)
    return BushingConstants(**constants), reports


def _three_axes(samples: Samples) -> list[FloatArray]:
    """Return displacements, rates and forces, enough of them for two constants."""
    names = ("displacements", "rates", "forces")
    attempt, expected = "Cannot fit a bushing", f"three arrays, {quoted(names)}"
    parts = items_of(samples, expected, attempt)
    if len(parts) != len(names):
        raise ValueRefusedError(attempt, expected=expected, found=f"{len(parts)} arrays")
    shape = (len(np.atleast_1d(as_numbers(parts[0], f"{attempt} to displacements"))), 3)
    arrays = [samples_of(part, name, shape) for part, name in zip(parts, names, strict=True)]
    require_enough(arrays[0], 2)
    return arrays

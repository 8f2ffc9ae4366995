"""Fits of the laws of mounts to dynamic stiffness and to relaxation that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.fits.dynamic_stiffness import DynamicStiffness, as_complex
from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.blocks.forces.fits.law_fits import fit_constants
from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_bounds, check_size

_ATTEMPT = "Cannot fit a dynamic stiffness"


@answers_other_words
def fit_dynamic_stiffness(
    frequency: npt.ArrayLike,
    stiffness: npt.ArrayLike,
    amplitude: npt.ArrayLike | None = None,
    *,
    branches: int = 2,
    damping: bool = False,
    friction: bool = False,
    memory: bool = False,
    fractional: bool = False,
) -> tuple[DynamicStiffness, FitReport]:
    """Fit one direction of a `GeneralBushing` to measured dynamic stiffness.

    Minimizes the sum of ``|K(f, X)/measured - 1|²``, so that soft and stiff measurements count
    alike.

    Parameters
    ----------
    frequency : array_like, shape (n,)
        Frequencies > 0 in Hz, two or more.
    stiffness : array_like of complex, shape (n,)
        Measured stiffness in N/m or N m/rad: load over deformation in harmonic motion, by first
        harmonics.
    amplitude : array_like, shape (n,), optional
        Amplitudes > 0 of the deformation in m or rad, two or more; needed with friction.
    branches : int
        Number of Maxwell branches.
    damping : bool
        Whether there is a damper without a spring in series.
    friction : bool
        Whether there is friction.
    memory : bool
        Whether friction remembers where it turned, as that of Berg.
    fractional : bool
        Whether there is a fractional element; best without branches.

    Returns
    -------
    DynamicStiffness
        The law, with branches from slow to fast.
    FitReport
        How well its constants are known: ``stiffness``, ``damping``, ``branch_stiffness_1``,
        ``relaxation_time_1`` and so on, ``friction_load`` and ``friction_deformation``,
        ``fractional_factor`` and ``fractional_exponent``.

    Raises
    ------
    ValueRefusedError
        When measurements are too few or not finite, a frequency or an amplitude is not above zero,
        a stiffness has no positive real part, or frequencies or amplitudes do not differ.
    EvaluationError
        When the fit does not converge.

    Warns
    -----
    UserWarning
        When the data do not determine a constant.

    See Also
    --------
    fit_relaxation : Fit a Prony series to a measured relaxation.

    Notes
    -----
    Relaxation times are sought from those of the measured frequencies on, one in each part of their
    range. About one branch for each decade of frequencies follows rubber to a few percent; more do
    not get determined.

    Examples
    --------
    >>> frequency = np.geomspace(1.0, 100.0, 20)
    >>> measured = DynamicStiffness(100.0, branches=((40.0, 0.01),)).at(frequency)
    >>> found, report = fit_dynamic_stiffness(frequency, measured, branches=1)
    >>> (np.round(found.stiffness, 6), np.round(found.branches, 6).tolist())
    (np.float64(100.0), [[40.0, 0.01]])
    """
    hertz = _positive(frequency, "frequency")
    measured = as_complex(stiffness, len(hertz), f"{_ATTEMPT} with stiffness")
    X = None if amplitude is None else _positive(amplitude, "amplitude", len(hertz))
    count = check_size(branches, "a number of branches")
    with_damping = flag(damping, "damping", _ATTEMPT)
    with_friction = flag(friction, "friction", _ATTEMPT)
    has_memory = flag(memory, "memory", _ATTEMPT)
    require(with_friction or not has_memory, memory, _ATTEMPT, "friction, which has the memory")
    with_power = flag(fractional, "fractional", _ATTEMPT)
    if with_friction:
        require(X is not None, X, _ATTEMPT, "amplitudes, which friction needs")
    for values, what in ((hertz, "frequencies"), (X if with_friction else hertz, "amplitudes")):
        differ = values is not None and np.ptp(values) > 0.0
        require(differ, values, _ATTEMPT, f"{what} that differ")
    start = _start(hertz, measured, X, count, with_damping, with_friction)
    bounds: dict[str, Any] = {"damping": (0.0, np.inf)} if with_damping else {}
    if with_power:
        start |= _start_of_power(hertz, measured)
        bounds["fractional_exponent"] = (0.01, 0.99)

    def law(**constants: float) -> FloatArray:
        ratio = _model(constants, count, has_memory).at(hertz, X) / measured
        return np.concatenate([ratio.real, ratio.imag])

    target = np.concatenate([np.ones(len(hertz)), np.zeros(len(hertz))])
    report = fit_constants(
        law, target, start, logarithmic=[name for name in start if name not in bounds],
        bounds=bounds or None,
    )  # fmt: skip
    found = _model(report.constants, count, has_memory)
    slow_first = sorted(found.branches, key=lambda branch: -branch[1])
    return replace(found, branches=tuple(slow_first)), report


def _start(
    hertz: FloatArray,
    measured: npt.NDArray[np.complex128],
    X: FloatArray | None,
    count: int,
    with_damping: bool,
    with_friction: bool,
) -> dict[str, float]:
    """Return constants to start from, by what the stiffness spans."""
    least, most = float(np.min(measured.real)), float(np.max(measured.real))
    share = max(most - least, 0.05 * most) / max(count + with_friction, 1)
    edges = np.geomspace(np.max(hertz), np.min(hertz), 2 * count + 1)[1::2]
    start = {"stiffness": least}
    if with_damping:
        start["damping"] = float(np.median(np.abs(measured.imag) / (2.0 * np.pi * hertz)))
    for j, middle in enumerate(edges[::-1], 1):
        start[f"branch_stiffness_{j}"] = share
        start[f"relaxation_time_{j}"] = float(1.0 / (2.0 * np.pi * middle))
    if with_friction and X is not None:
        half = float(np.exp(np.mean(np.log(X))))
        start |= {"friction_load": share * half, "friction_deformation": half}
    return start


def _start_of_power(hertz: FloatArray, measured: npt.NDArray[np.complex128]) -> dict[str, float]:
    """Return a fractional element to start from, by the loss angles in the middle."""
    exponent = float(np.clip(np.median(np.angle(measured)) * 4.0 / np.pi, 0.1, 0.7))
    middle = float(np.exp(np.mean(np.log(hertz))))
    loss = float(np.median(np.abs(measured.imag))) or 0.05 * float(np.median(np.abs(measured)))
    factor = loss / np.sin(0.5 * np.pi * exponent) / (2.0 * np.pi * middle) ** exponent
    return {"fractional_factor": factor, "fractional_exponent": exponent}


def _model(
    constants: Mapping[str, float], count: int, has_memory: bool = False
) -> DynamicStiffness:
    """Return the law with constants by name."""
    series = tuple(
        (constants[f"branch_stiffness_{j}"], constants[f"relaxation_time_{j}"])
        for j in range(1, count + 1)
    )
    friction = None
    if "friction_load" in constants:
        friction = constants["friction_load"], constants["friction_deformation"]
    power = None
    if "fractional_factor" in constants:
        power = constants["fractional_factor"], constants["fractional_exponent"]
    return DynamicStiffness(
        constants["stiffness"],
        constants.get("damping", 0.0),
        series,
        friction,
        power,
        has_memory=has_memory,
    )


def fit_relaxation(
    times: npt.ArrayLike, stiffness: npt.ArrayLike, *, branches: int = 2
) -> tuple[DynamicStiffness, FitReport]:
    """Fit a Prony series to a measured relaxation.

    Minimizes the sum of ``((k + Σ kⱼ exp(-t/Tⱼ))/measured - 1)²``.

    Parameters
    ----------
    times : array_like, shape (n,)
        Times > 0 in s since the deformation, which is held, has come.
    stiffness : array_like, shape (n,)
        Load over deformation > 0 at these times, in N/m or N m/rad.
    branches : int
        Number of Maxwell branches, one or more.

    Returns
    -------
    DynamicStiffness
        The law, with branches from slow to fast.
    FitReport
        How well its constants are known: ``stiffness``, ``branch_stiffness_1``,
        ``relaxation_time_1`` and so on.

    Raises
    ------
    ValueRefusedError
        When measurements are too few, not finite or not above zero, or times do not differ.
    EvaluationError
        When the fit does not converge.

    Warns
    -----
    UserWarning
        When the data do not determine a constant.

    See Also
    --------
    fit_dynamic_stiffness : Fit one direction of a `GeneralBushing` to measured dynamic stiffness.

    Examples
    --------
    >>> times = np.geomspace(1e-3, 10.0, 30)
    >>> held = DynamicStiffness.prony(100.0, [0.4, 0.2], [0.01, 1.0]).relaxation(times)
    >>> found, report = fit_relaxation(times, held)
    >>> np.round(found.branches, 6).tolist()
    [[20.0, 1.0], [40.0, 0.01]]
    """
    attempt = "Cannot fit a relaxation"
    t = _positive(times, "times", attempt=attempt)
    measured = _positive(stiffness, "stiffness", len(t), attempt=attempt)
    count = check_size(branches, "a number of branches", minimum=1)
    require(np.ptp(t) > 0.0, times, attempt, "times that differ")
    edges = np.geomspace(np.max(t), np.min(t), 2 * count + 1)[1::2]
    least = float(np.min(measured))
    share = max(float(np.ptp(measured)), 0.05 * least) / count
    start = {"stiffness": least}
    for j, middle in enumerate(edges, 1):
        start[f"branch_stiffness_{j}"] = share
        start[f"relaxation_time_{j}"] = float(middle)

    def law(**constants: float) -> FloatArray:
        return _model(constants, count).relaxation(t) / measured

    report = fit_constants(law, np.ones(len(t)), start, logarithmic=list(start))
    found = _model(report.constants, count)
    slow_first = sorted(found.branches, key=lambda branch: -branch[1])
    return replace(found, branches=tuple(slow_first)), report


def _positive(
    values: npt.ArrayLike, what: str, count: int | None = None, *, attempt: str = _ATTEMPT
) -> FloatArray:
    """Return numbers above zero in one row."""
    attempt = f"{attempt} with {what}"
    numbers = as_numbers(values, attempt)
    fits = numbers.ndim == 1 and (len(numbers) >= 2 if count is None else len(numbers) == count)
    wanted = "two or more" if count is None else f"{count}, one for each frequency,"
    require(fits, values, attempt, f"{wanted} numbers in one row")
    check_bounds(numbers, attempt, lower=0.0, exclusive=True)
    return np.asarray(numbers, dtype=np.float64)

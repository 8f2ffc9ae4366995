"""Stiffness in harmonic motion, over frequency and amplitude: its law, and fits to measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.fit_report import FitReport
from flexure.blocks.forces.law_fits import fit_constants
from flexure.diagrams.arguments import flag, require, shown
from flexure.diagrams.errors import ValueRefusedError
from flexure.diagrams.values import FloatArray, as_numbers, check_bounds, check_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ATTEMPT = "Cannot fit a dynamic stiffness"
#: Points and weights for the mean over the half of a cycle in which the deformation grows.
_POINTS = 48


@dataclass(frozen=True)
class DynamicStiffness:
    """The complex stiffness of one direction of a `GeneralBushing` in harmonic motion.

    With the angular frequency ω and the amplitude X of the deformation::

        K(ω, X) = k + i ω d + Σ kⱼ i ω Tⱼ/(1 + i ω Tⱼ) + K_f(X)

    K_f is that of the friction, by the first harmonic of its load in a steady cycle. With α from
    `FrictionBranch`, and the load F a while x = X sin φ grows from -X to X::

        1/(1 - a) = 1/(1 + α) + (X + x)/h
        K_f = 2 F/(π X) ∫ a (sin φ + i cos φ) dφ,  -π/2 <= φ <= π/2

    Attributes
    ----------
    stiffness, damping : float
        Constants k >= 0 in N/m and d >= 0 in N s/m, or those of a rotation.
    branches : tuple of (float, float)
        Stiffness kⱼ >= 0 and relaxation time Tⱼ > 0 in s of branches.
    friction : (float, float) or None
        Greatest load F >= 0 and deformation h > 0 of friction, if there is any.

    Examples
    --------
    >>> rubber = DynamicStiffness(100.0, branches=((40.0, 0.02),))
    >>> rubber.at([0.0, 1e3]).round(1)
    array([100.+0.j , 140.+0.3j])
    """

    stiffness: float
    damping: float = 0.0
    branches: tuple[tuple[float, float], ...] = ()
    friction: tuple[float, float] | None = None

    def at(
        self, frequency: npt.ArrayLike, amplitude: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.complex128]:
        """Return the complex stiffness.

        Parameters
        ----------
        frequency : array_like
            Frequencies >= 0 in Hz.
        amplitude : array_like, optional
            Amplitudes > 0 in m or rad, one for each frequency or for all; needed with friction.

        Returns
        -------
        ndarray of complex
            In N/m, or N m/rad.

        Raises
        ------
        ValueRefusedError
            When a frequency is negative or an amplitude is not above zero, or missing.
        """
        attempt = "Cannot compute a dynamic stiffness"
        hertz = as_numbers(frequency, f"{attempt} with frequency")
        check_bounds(hertz, f"{attempt} with frequency", lower=0.0)
        s = 2j * np.pi * hertz
        total = self.stiffness + self.damping * s
        for stiffness, time in self.branches:
            total = total + stiffness * time * s / (1.0 + time * s)
        if self.friction is None:
            return np.asarray(total, dtype=np.complex128)
        require(amplitude is not None, amplitude, attempt, "amplitudes, which friction needs")
        X = as_numbers(amplitude, f"{attempt} with amplitude")
        check_bounds(X, f"{attempt} with amplitude", lower=0.0, exclusive=True)
        fits = X.ndim == 0 or X.shape == hertz.shape
        require(fits, amplitude, attempt, "an amplitude for all frequencies or one for each")
        return np.asarray(total + _friction(X, *self.friction), dtype=np.complex128)

    def plot(
        self,
        frequency: npt.ArrayLike,
        amplitude: npt.ArrayLike | None = None,
        *,
        measured: npt.ArrayLike | None = None,
        ax: Sequence[Axes] | None = None,
        path: str | Path | None = None,
    ) -> tuple[Axes, Axes]:
        """Plot magnitude and loss angle over frequency, with a line for each amplitude.

        Parameters
        ----------
        frequency, amplitude : array_like, shape (n,)
            Where to compute it, as for `at`.
        measured : array_like of complex, shape (n,), optional
            What was measured there, as points.
        ax : sequence of matplotlib.axes.Axes, optional
            The two axes; a new figure when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        tuple of matplotlib.axes.Axes
            The axes of magnitude and loss angle.
        """
        from flexure.blocks.forces.dynamic_stiffness_figure import plot_dynamic_stiffness

        return plot_dynamic_stiffness(self, frequency, amplitude, measured, ax, path)


def _friction(X: FloatArray, limit: float, half: float) -> Any:
    """Return the first harmonic of the load of friction over the amplitude."""
    Y = np.expand_dims(X / half, -1)
    alpha = 2.0 * Y / (1.0 + np.sqrt(1.0 + 4.0 * Y**2))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    phi = 0.5 * np.pi * points
    a = 1.0 - 1.0 / (1.0 / (1.0 + alpha) + Y * (1.0 + np.sin(phi)))
    return limit / X * np.sum(weights * a * (np.sin(phi) + 1j * np.cos(phi)), axis=-1)


def fit_dynamic_stiffness(
    frequencies: npt.ArrayLike,
    stiffness: npt.ArrayLike,
    amplitudes: npt.ArrayLike | None = None,
    *,
    branches: int = 2,
    damping: bool = False,
    friction: bool = False,
) -> tuple[DynamicStiffness, FitReport]:
    """Fit the constants of one direction of a `GeneralBushing` to measured dynamic stiffness.

    Minimizes the sum of ``|K(f, X)/measured - 1|²``, so that soft and stiff measurements count
    alike.

    Parameters
    ----------
    frequencies : array_like, shape (n,)
        Frequencies > 0 in Hz, two or more.
    stiffness : array_like of complex, shape (n,)
        Measured stiffness in N/m or N m/rad: load over deformation in harmonic motion, by first
        harmonics.
    amplitudes : array_like, shape (n,), optional
        Amplitudes > 0 of the deformation in m or rad, two or more; needed with friction.
    branches : int
        Number of Maxwell branches.
    damping : bool
        Whether there is a damper without a spring in series.
    friction : bool
        Whether there is friction.

    Returns
    -------
    DynamicStiffness
        The law, with branches from slow to fast.
    FitReport
        How well its constants are known: ``stiffness``, ``damping``, ``branch_stiffness_1``,
        ``relaxation_time_1`` and so on, ``friction_load`` and ``friction_deformation``.

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

    Notes
    -----
    Relaxation times are sought from those of the measured frequencies on, one in each part of their
    range. About one branch for each decade of frequencies follows rubber to a few percent; more do
    not get determined.

    Examples
    --------
    >>> frequencies = np.geomspace(1.0, 100.0, 20)
    >>> measured = DynamicStiffness(100.0, branches=((40.0, 0.01),)).at(frequencies)
    >>> found, report = fit_dynamic_stiffness(frequencies, measured, branches=1)
    >>> (np.round(found.stiffness, 6), np.round(found.branches, 6).tolist())
    (np.float64(100.0), [[40.0, 0.01]])
    """
    hertz = _positive(frequencies, "frequencies")
    measured = as_complex(stiffness, len(hertz), f"{_ATTEMPT} with stiffness")
    X = None if amplitudes is None else _positive(amplitudes, "amplitudes", len(hertz))
    count = check_size(branches, "a number of branches")
    with_damping = flag(damping, "damping", _ATTEMPT)
    with_friction = flag(friction, "friction", _ATTEMPT)
    if with_friction:
        require(X is not None, X, _ATTEMPT, "amplitudes, which friction needs")
    for values, what in ((hertz, "frequencies"), (X if with_friction else hertz, "amplitudes")):
        differ = values is not None and np.ptp(values) > 0.0
        require(differ, values, _ATTEMPT, f"{what} that differ")
    start = _start(hertz, measured, X, count, with_damping, with_friction)

    def law(**constants: float) -> FloatArray:
        ratio = _model(constants, count).at(hertz, X) / measured
        return np.concatenate([ratio.real, ratio.imag])

    target = np.concatenate([np.ones(len(hertz)), np.zeros(len(hertz))])
    report = fit_constants(
        law, target, start, logarithmic=[name for name in start if name != "damping"],
        bounds={"damping": (0.0, np.inf)} if with_damping else None,
    )  # fmt: skip
    found = _model(report.constants, count)
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


def _model(constants: Mapping[str, float], count: int) -> DynamicStiffness:
    """Return the law with constants by name."""
    series = tuple(
        (constants[f"branch_stiffness_{j}"], constants[f"relaxation_time_{j}"])
        for j in range(1, count + 1)
    )
    friction = None
    if "friction_load" in constants:
        friction = constants["friction_load"], constants["friction_deformation"]
    return DynamicStiffness(constants["stiffness"], constants.get("damping", 0.0), series, friction)


def _positive(values: npt.ArrayLike, what: str, count: int | None = None) -> FloatArray:
    """Return numbers above zero in one row."""
    attempt = f"{_ATTEMPT} with {what}"
    numbers = as_numbers(values, attempt)
    fits = numbers.ndim == 1 and (len(numbers) >= 2 if count is None else len(numbers) == count)
    wanted = "two or more" if count is None else f"{count}, one for each frequency,"
    require(fits, values, attempt, f"{wanted} numbers in one row")
    check_bounds(numbers, attempt, lower=0.0, exclusive=True)
    return np.asarray(numbers, dtype=np.float64)


def as_complex(values: Any, count: int, attempt: str) -> npt.NDArray[np.complex128]:
    """Return the measured stiffness."""
    expected = f"{count} complex numbers in one row"
    try:
        numbers = np.asarray(values, dtype=np.complex128)
    except (TypeError, ValueError, OverflowError):
        raise ValueRefusedError(attempt, expected=expected, found=shown(values)) from None
    require(numbers.shape == (count,), values, attempt, expected)
    fits = bool(np.all(np.isfinite(numbers)) and np.all(numbers.real > 0.0))
    require(fits, values, attempt, "finite numbers with a positive real part")
    return numbers


__all__ = ["DynamicStiffness", "fit_dynamic_stiffness"]

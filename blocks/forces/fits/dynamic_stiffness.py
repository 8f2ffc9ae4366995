"""The law of one direction of a mount: its stiffness over frequency and amplitude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.coefficients.bushing_coefficients import DIRECTIONS, branches_like_power
from flexure.diagrams.checks.arguments import check_axes, flag, items_of, mapping, require, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, suggestion
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, tidy
from flexure.diagrams.values.arrays import (
    FloatArray,
    as_number,
    as_numbers,
    bounded,
    check_bounds,
    refuse_masked,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class DynamicStiffness:
    """The complex stiffness of one direction of a `GeneralBushing` in harmonic motion.

    With the angular frequency ω and the amplitude X of the deformation::

        K(ω, X) = k + i ω d + Σ kⱼ i ω Tⱼ/(1 + i ω Tⱼ) + c (i ω)^β + K_f(X)

    K_f is that of the friction, by the first harmonic of its load in a steady cycle. With α from
    `FrictionBranch`, and the load F a while x = X sin φ grows from -X to X::

        K_f = 2 F/(π X) ∫ a (sin φ + i cos φ) dφ,  -π/2 <= φ <= π/2
        1/(1 - a) = 1/(1 + α) + (X + x)/h                   without memory, or
        1 - a = (1 + α)/(1 + (X + x)/(h (1 + α)))           with memory

    Attributes
    ----------
    stiffness, damping : float
        Constants k >= 0 in N/m and d >= 0 in N s/m, or those of a rotation.
    branches : tuple of (float, float)
        Stiffness kⱼ >= 0 and relaxation time Tⱼ > 0 in s of branches.
    friction : (float, float) or None
        Greatest load F >= 0 and deformation h > 0 of friction, if there is any.
    fractional : (float, float) or None
        Factor c >= 0 in N/m s^β and exponent β between 0 and 1 of a fractional element, if there is
        one. A bushing has `with_branches` in its place.
    has_memory : bool
        Whether friction remembers where it turned, as ``friction_memory`` of a `GeneralBushing`.

    See Also
    --------
    fit_dynamic_stiffness : Fit a model to measured values.

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
    fractional: tuple[float, float] | None = None
    has_memory: bool = False

    @classmethod
    def prony(
        cls,
        stiffness: float,
        moduli: npt.ArrayLike,
        times: npt.ArrayLike,
        *,
        instantaneous: bool = False,
    ) -> DynamicStiffness:
        """Return the law of a Prony series with relative moduli.

        With the moduli gⱼ and the times Tⱼ, a deformation that is held gives the load::

            k (1 + Σ gⱼ exp(-t/Tⱼ))                of the stiffness k at last, or
            k₀ (1 - Σ gⱼ (1 - exp(-t/Tⱼ)))         of the instantaneous one k₀

        Parameters
        ----------
        stiffness : float
            k >= 0, or k₀, in N/m or N m/rad.
        moduli : array_like, shape (n,)
            Relative moduli gⱼ >= 0; those of an instantaneous stiffness have a sum of at most 1.
        times : array_like, shape (n,)
            Relaxation times Tⱼ > 0 in s.
        instantaneous : bool
            Whether the stiffness is the instantaneous one, to which the moduli are relative.

        Returns
        -------
        DynamicStiffness
            With a branch for each modulus that is not zero.

        Raises
        ------
        ValueRefusedError
            When a number is out of its range, or there is not one time for each modulus.

        Examples
        --------
        >>> DynamicStiffness.prony(100.0, [0.3, 0.2], [0.01, 1.0], instantaneous=True)
        DynamicStiffness(stiffness=50.0, ..., branches=((30.0, 0.01), (20.0, 1.0)), ...)
        """
        attempt = "Cannot make a Prony series"
        k = bounded(stiffness, f"{attempt} with stiffness", lower=0.0)
        g, T = (as_numbers(each, f"{attempt} with {what}") for each, what in
                ((moduli, "moduli"), (times, "times")))  # fmt: skip
        fits = g.ndim == 1 and g.shape == T.shape
        require(fits, times, f"{attempt} with times", "a time for each modulus, in one row")
        check_bounds(g, f"{attempt} with moduli", lower=0.0)
        check_bounds(T, f"{attempt} with times", lower=0.0, exclusive=True, unit="s")
        at_last = float(k)
        if flag(instantaneous, "instantaneous", attempt):
            total = math.fsum(g.tolist())
            if total > 1.0 + 1e-12:
                raise ValueRefusedError(
                    f"{attempt} with moduli", expected="a sum of at most 1", found=f"{total:g}"
                )
            at_last *= max(1.0 - total, 0.0)
        branches = tuple((float(k) * each, time) for each, time in zip(g.tolist(), T.tolist(),
                         strict=True) if each)  # fmt: skip
        return cls(at_last, branches=branches)

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
        if self.fractional is not None:
            factor, exponent = self.fractional
            total = total + factor * s**exponent
        if self.friction is None:
            return np.asarray(total, dtype=np.complex128)
        require(amplitude is not None, amplitude, attempt, "amplitudes, which friction needs")
        X = as_numbers(amplitude, f"{attempt} with amplitude")
        check_bounds(X, f"{attempt} with amplitude", lower=0.0, exclusive=True)
        fits = X.ndim == 0 or X.shape == hertz.shape
        require(fits, amplitude, attempt, "an amplitude for all frequencies or one for each")
        return np.asarray(
            total + first_harmonic(X, *self.friction, has_memory=self.has_memory),
            dtype=np.complex128,
        )

    def relaxation(self, time: npt.ArrayLike) -> FloatArray:
        """Return the relaxation modulus: load over deformation at a constant deformation.

        Parameters
        ----------
        time : array_like
            Times > 0 in s since it has come at once.

        Returns
        -------
        ndarray
            k + Σ kⱼ exp(-t/Tⱼ) + c t^-β/Γ(1 - β), in N/m or N m/rad.

        Raises
        ------
        ValueRefusedError
            When a time is not above zero, or there is friction, which does not relax.
        """
        attempt = "Cannot compute a relaxation"
        t = as_numbers(time, f"{attempt} with time")
        check_bounds(t, f"{attempt} with time", lower=0.0, exclusive=True, unit="s")
        require(self.friction is None, self.friction, attempt, "a law without friction")
        total = np.full(t.shape, float(self.stiffness))
        for stiffness, constant in self.branches:
            total = total + stiffness * np.exp(-t / constant)
        if self.fractional is not None:
            factor, exponent = self.fractional
            total = total + factor * t**-exponent / math.gamma(1.0 - exponent)
        return np.asarray(total, dtype=np.float64)

    def with_branches(self, band: tuple[float, float], *, error: float = 0.01) -> DynamicStiffness:
        """Return the law with branches instead of the fractional element.

        The branches are as few as keep to the error. Below the band they are too stiff against the
        element, which relaxes slower than any branch, and above it too soft.

        Parameters
        ----------
        band : (float, float)
            Lowest and highest frequency > 0 in Hz.
        error : float
            Greatest difference allowed from c (i ω)^β anywhere in the band, over its magnitude.

        Returns
        -------
        DynamicStiffness
            Without a fractional element; the branches go from slow to fast.

        Raises
        ------
        ValueRefusedError
            When the band is empty, or the error takes more branches than make sense.

        Examples
        --------
        >>> law = DynamicStiffness(0.0, fractional=(100.0, 0.3)).with_branches((1.0, 100.0))
        >>> len(law.branches)
        6
        >>> exact = 100.0 * (2j * np.pi * 10.0) ** 0.3
        >>> bool(abs(law.at(10.0) / exact - 1.0) < 0.01)
        True
        """
        attempt = "Cannot replace a fractional element by branches"
        ends = items_of(band, "two frequencies", attempt)
        require(len(ends) == 2, band, attempt, "two frequencies")
        low, high = (as_number(each, (), f"{attempt} with band") for each in ends)
        for each in (low, high):
            check_bounds(each, f"{attempt} with band", lower=0.0, exclusive=True, unit="Hz")
        require(low < high, band, f"{attempt} with band", "frequencies that increase")
        allowed = bounded(error, f"{attempt} with error", lower=1e-4, upper=0.5)
        if self.fractional is None:
            return self
        factor, exponent = self.fractional
        found = branches_like_power(exponent, float(low), float(high), float(allowed))
        more = tuple((factor * stiffness, time) for stiffness, time in found)
        return replace(self, branches=(*self.branches, *more), fractional=None)

    def plot(
        self,
        frequency: npt.ArrayLike,
        amplitude: npt.ArrayLike | None = None,
        *,
        measured: npt.ArrayLike | None = None,
        ax: Sequence[Axes] | None = None,
        path: str | Path | None = None,
    ) -> Figure:
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
        matplotlib.figure.Figure
            Its axes are those of magnitude and loss angle.
        """
        attempt = "Cannot plot a dynamic stiffness"
        computed = self.at(frequency, amplitude)
        hertz = np.asarray(frequency, dtype=float)
        levels = np.zeros(()) if amplitude is None else as_numbers(amplitude, attempt)
        fits = hertz.ndim == 1 and len(hertz) > 0 and levels.shape in {(), hertz.shape}
        require(
            fits, frequency, attempt, "frequencies in one row, and an amplitude for each or for all"
        )
        X = np.broadcast_to(levels, hertz.shape)
        points = None if measured is None else as_complex(measured, len(computed), attempt)
        check_file(path, attempt)
        axes: Any = ax
        if ax is None:
            axes = new_figure(figsize=(8.0, 6.0), layout="constrained").subplots(2, 1, sharex=True)
        else:
            axes = items_of(ax, "two axes", attempt)
            require(len(axes) == 2, ax, attempt, "two axes")
            for each in axes:
                check_axes(each, attempt)
        upper, lower = axes
        for number, level in enumerate(np.unique(X)):
            which = np.flatnonzero(level == X)
            which = which[np.argsort(hertz[which], kind="stable")]
            color = COLORS[number % len(COLORS)]
            label = "computed" if amplitude is None else f"amplitude {level:.3g}"
            for panel, show in ((upper, np.abs), (lower, _degrees)):
                panel.plot(hertz[which], show(computed[which]), color=color, label=label)
                if points is not None:
                    panel.plot(hertz[which], show(points[which]), ".", color=color)
        for panel in (upper, lower):
            panel.set_xscale("log")
            tidy(panel)
        upper.set_ylabel("dynamic stiffness")
        upper.legend(frameon=False, loc="best")
        lower.set_ylabel("loss angle [°]")
        lower.set_xlabel("frequency [Hz]")
        figure: Figure = upper.figure.figure
        return saved(figure, path)


def bushing_options(laws: Mapping[str, DynamicStiffness]) -> dict[str, Any]:
    """Return the arguments of a `GeneralBushing` with given laws per direction.

    Parameters
    ----------
    laws : mapping of str to DynamicStiffness
        For ``"rx"``, ``"ry"``, ``"rz"``, ``"x"``, ``"y"`` or ``"z"``; other directions are free.

    Returns
    -------
    dict
        ``stiffness``, ``damping``, ``branches``, ``friction`` and ``friction_memory``.

    Raises
    ------
    UnknownNameError
        When there is no such direction.
    ValueRefusedError
        When a law has a fractional element: `DynamicStiffness.with_branches` replaces it.

    See Also
    --------
    fit_bushing : Fit the constants of a bushing to loads measured at displacements and rates.

    Examples
    --------
    >>> import flexure as fx
    >>> rubber = DynamicStiffness.prony(4e4, [0.5], [0.01])
    >>> options = bushing_options({"x": rubber, "z": rubber})
    >>> mount = fx.GeneralBushing("mount", fx.Body("frame"), fx.Body("engine"), **options)
    >>> mount.continuous_state.element_names
    ('stretch_1_x', 'stretch_2_z')
    """
    attempt = "Cannot make options of a bushing"
    given = mapping(laws, "laws", attempt)
    stiffness, damping = np.zeros(6), np.zeros(6)
    branches: list[tuple[FloatArray, float]] = []
    friction: dict[str, tuple[float, float]] = {}
    for name, law in given.items():
        if name not in DIRECTIONS:
            raise UnknownNameError(
                f"{attempt} for {name!r}", remedy=suggestion(str(name), DIRECTIONS)
            )
        require(isinstance(law, DynamicStiffness), law, attempt, "a DynamicStiffness")
        wanted = "a law without a fractional element, as with_branches(...) returns it"
        require(law.fractional is None, law, f"{attempt} for '{name}'", wanted)
        unit = np.eye(6)[DIRECTIONS.index(name)]
        stiffness, damping = stiffness + law.stiffness * unit, damping + law.damping * unit
        branches += [(each * unit, time) for each, time in law.branches]
        if law.friction is not None:
            friction[name] = law.friction
    return {
        "stiffness": stiffness,
        "damping": damping,
        "branches": branches,
        "friction": friction,
        "friction_memory": tuple(name for name in friction if given[name].has_memory),
    }


#: Points and weights for the mean over the half of a cycle in which the deformation grows.
_POINTS = 48


def first_harmonic(X: FloatArray, limit: float, half: float, *, has_memory: bool) -> Any:
    """Return the first harmonic of the load of friction over the amplitude, in N/m or N m/rad.

    Amplitudes X > 0 are in m or rad. The load is at most ``limit``, and half of it at the
    deformation ``half`` from rest on. With memory, its slope starts with their quotient from each
    turn on.
    """
    Y = np.expand_dims(X / half, -1)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    phi = 0.5 * np.pi * points
    way = Y * (1.0 + np.sin(phi))
    if has_memory:
        alpha = 2.0 * Y / (1.0 + Y + np.sqrt(1.0 + Y * (6.0 + Y)))
        a = 1.0 - (1.0 + alpha) / (1.0 + way / (1.0 + alpha))
    else:
        alpha = 2.0 * Y / (1.0 + np.sqrt(1.0 + 4.0 * Y**2))
        a = 1.0 - 1.0 / (1.0 / (1.0 + alpha) + way)
    return limit / X * np.sum(weights * a * (np.sin(phi) + 1j * np.cos(phi)), axis=-1)


def _degrees(stiffness: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return the loss angle."""
    return np.asarray(np.rad2deg(np.angle(stiffness)))


def as_complex(values: Any, count: int, attempt: str) -> npt.NDArray[np.complex128]:
    """Return the measured stiffness."""
    expected = f"{count} complex numbers in one row"
    refuse_masked(values, attempt, expected)
    try:
        numbers = np.asarray(values, dtype=np.complex128)
    except (TypeError, ValueError, OverflowError):
        raise ValueRefusedError(attempt, expected=expected, found=shown(values)) from None
    require(numbers.shape == (count,), values, attempt, expected)
    fits = bool(np.all(np.isfinite(numbers)) and np.all(numbers.real > 0.0))
    require(fits, values, attempt, "finite numbers with a positive real part")
    return numbers

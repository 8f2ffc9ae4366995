"""Frequency responses as curves: models by their labels, frequencies, phases and crossings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import items_of, one_of, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, as_numbers
from flexure.solvers.analysis.frequency.margins import margins
from flexure.solvers.analysis.linear_models.linear_model import (
    LinearModel,
    channels,
    refuse_systems,
)
from flexure.solvers.analysis.linear_models.realizations import is_regular

ComplexArray: TypeAlias = npt.NDArray[np.complex128]
#: One linear model, or several by label or in a list.
Models: TypeAlias = "LinearModel | Mapping[str, LinearModel] | list[LinearModel]"

#: What one unit of the frequency axis is in rad/s.
UNITS = {"rad/s": 1.0, "Hz": 2.0 * np.pi}

_AT_ZERO = 1e-7  # poles and zeros smaller than this part of the largest one are at zero
_ON_AXIS = 1e-9  # damping below which a pole counts as undamped
_CLOSEST = 1e-4  # how near a curve goes to the frequency of an undamped pole
_PER_DECADE = 100
_MORE_DECADES = 4  # that are added so that |L| = 1 is in the picture


@dataclass(frozen=True, eq=False)
class Curve:
    """The response from one input to one output."""

    label: str  # how it is called; empty for a single model
    model: LinearModel  # with one input and one output
    omega: FloatArray  # frequencies in rad/s, ascending, shape (N,)
    response: ComplexArray  # the amplitude of the output per amplitude of the input, shape (N,)

    def at(self, omega: float) -> complex:
        """Return the response at a frequency in rad/s."""
        return complex(self.model.frequency_response(omega)[0, 0])

    @property
    def decibels(self) -> FloatArray:
        """20 log10 of the magnitude; NaN for zero."""
        return to_decibels(np.abs(self.response))

    @property
    def phase(self) -> FloatArray:
        """The continuous phase in degrees; NaN for zero.

        The poles and zeros say how far it has turned, and the response has the digits. Undamped
        poles lag as if they were a little damped. At low frequencies it is within half a turn of
        -90° for each pole at zero.
        """
        turned, count = _turns(self.model, self.omega)
        angle = np.where(self.response != 0.0, np.angle(self.response), np.nan)
        if np.nansum(np.cos(angle - turned)) < 0.0:  # the leading coefficient is negative
            turned = turned + np.pi
        exact = turned + np.angle(np.exp(1j * (angle - turned)))
        known = exact[np.isfinite(exact)]
        start = (known[0] if known.size else 0.0) + 0.5 * np.pi * count
        turns = np.ceil(start / (2.0 * np.pi) - 0.5 - 1e-9)
        return np.asarray(np.rad2deg(exact - 2.0 * np.pi * turns))


def to_decibels(ratio: FloatArray) -> FloatArray:
    """Return 20 log10 of ratios; NaN for zero."""
    with np.errstate(all="ignore"):
        found: FloatArray = 20.0 * np.log10(ratio)
    return np.where(np.isfinite(found), found, np.nan)


# Models ---------------------------------------------------------------------------------------


def labelled(models: Models, attempt: str, *, ports: bool = True) -> list[tuple[str, LinearModel]]:
    """Return models with their labels; what is none, or cannot be drawn, is refused."""
    wanted = "a LinearModel, as fx.linearize returns it, or a list or dictionary of them"
    refuse_systems(models, attempt, wanted)
    if isinstance(models, LinearModel):
        found = [("", models)]
    elif isinstance(models, Mapping):
        fits = models and all(isinstance(m, LinearModel) for m in models.values())
        require(fits, models, attempt, wanted)
        found = [(str(label), model) for label, model in models.items()]
    else:
        listed = items_of(models, wanted, attempt, kind=LinearModel)
        require(listed, models, attempt, wanted)
        found = [(f"model {k + 1}" if len(listed) > 1 else "", m) for k, m in enumerate(listed)]
    for label, model in found:
        name = f"'{label}'" if label else "the model"
        if ports and not model.D.size:
            remedy = "Name inputs= and outputs= where you linearize"
            raise ValueRefusedError(
                attempt,
                expected="models with an input and an output",
                found=f"{model.D.shape[1]} inputs and {model.D.shape[0]} outputs in {name}",
                remedy=remedy,
            )
    return found


def curves_of(
    models: Models,
    frequency: npt.ArrayLike | None,
    units: str,
    attempt: str,
    *,
    single: bool,
    beyond: float = 1.0,
) -> list[Curve]:
    """Return the curves from every input to every output of models.

    By default they go over the frequencies that matter, and by a factor ``beyond`` to both sides.
    """
    pairs = []
    for label, model in labelled(models, attempt):
        p, m = model.D.shape
        if single and (p, m) != (1, 1):
            raise ValueRefusedError(
                attempt,
                expected="models with one input and one output",
                found=f"{m} inputs and {p} outputs" + (f" in '{label}'" if label else ""),
                remedy="Name one of inputs= and one of outputs= where you linearize, or draw "
                "fx.bode or fx.singular_values",
            )
        for i, j in np.ndindex(p, m):
            way = f"{model.output_names[i]} / {model.input_names[j]}" if p * m > 1 else ""
            pairs.append((": ".join(filter(None, (label, way))), channels(model, [j], [i])))
    grids = frequencies([model for _, model in pairs], frequency, units, attempt, beyond)
    return [
        Curve(label, model, omega, model.frequency_response(omega)[:, 0, 0])
        for (label, model), omega in zip(pairs, grids, strict=True)
    ]


# Frequencies ----------------------------------------------------------------------------------


def frequencies(
    models: list[LinearModel],
    frequency: npt.ArrayLike | None,
    units: str,
    attempt: str,
    beyond: float = 1.0,
) -> list[FloatArray]:
    """Return the frequencies in rad/s at which each model is evaluated."""
    unit = UNITS[one_of(units, UNITS, "units", attempt)]
    if frequency is not None:
        given = as_numbers(frequency, attempt, "frequencies") * unit
        fits = given.ndim == 1 and len(given) > 1 and bool(np.isfinite(given).all())
        fits = fits and bool(given[0] > 0.0 and np.all(np.diff(given) > 0.0))
        wanted = f"two or more ascending frequencies above zero, in {units}"
        require(fits, frequency, attempt, wanted)
        return [given] * len(models)
    ranges = [_range(model) for model in models]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return [_grid(model, low / beyond, high * beyond) for model in models]


def _poles_and_zeros(model: LinearModel) -> tuple[ComplexArray, ComplexArray]:
    """Return poles and zeros; those that rounding has moved away from zero are put back."""
    # Where the matrix is regular, a small pole is slow and no more.
    model = model.on_tangent()
    poles, zeros = model.poles, model.zeros
    home = 0.0 if model.period is None else 1.0
    reach = np.max(np.abs(np.concatenate([poles, zeros]) - home), initial=0.0)
    still = model.A - home * np.eye(len(model.A))
    whole = np.block([[still, model.B], [model.C, model.D]])
    for roots, matrix in ((poles, still), (zeros, whole)):
        if not is_regular(matrix):
            roots[np.abs(roots - home) <= _AT_ZERO * reach] = home
    return poles, zeros


def _rates(model: LinearModel) -> ComplexArray:
    """Return poles and zeros in rad/s but those at zero, also of sampled models."""
    roots = np.concatenate(_poles_and_zeros(model))
    if model.period is not None:
        inside = roots[np.abs(roots) > np.finfo(float).tiny]
        roots = np.asarray(np.log(inside) / model.period, dtype=complex)
    return roots[np.abs(roots) > 0.0]


def _range(model: LinearModel) -> tuple[float, float]:
    """Return the lowest and the highest frequency that are worth a look, in rad/s."""
    corners = np.abs(_rates(model))
    last = np.inf if model.period is None else np.pi / model.period
    corners = corners[corners <= last]
    if corners.size:
        low, high = corners.min() / 5.0, 5.0 * corners.max()
    elif model.period is not None:
        low, high = last / 100.0, last
    else:
        low, high = _around_crossing(model)
    if not 0.0 < low <= high < np.inf:  # beyond what floats can hold
        low, high = 0.1, 10.0
    low, high = 10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high))
    if model.D.shape == (1, 1):  # so that |L| = 1 is in the picture
        for _ in range(_MORE_DECADES):
            first, second = _gain(model, low), _gain(model, 2.0 * low)
            low *= 0.1 if 1.0 > first > 1.5 * second else 1.0
            first, second = _gain(model, min(high, last)), _gain(model, 0.5 * min(high, last))
            high *= 10.0 if 1.0 < first < 0.67 * second else 1.0
    return low, min(high, last)


def _gain(model: LinearModel, omega: float) -> float:
    return float(np.max(np.abs(model.frequency_response(omega)), initial=0.0))


def _around_crossing(model: LinearModel) -> tuple[float, float]:
    """Return frequencies around that at which a chain of integrators has the gain 1."""
    first, second = _gain(model, 1.0), _gain(model, 10.0)
    if first > 0.0 and second > 0.0 and first != second:
        crossing = 10.0 ** (np.log10(first) / np.log10(first / second))
        if 1e-200 < crossing < 1e200:
            return crossing / 10.0, 10.0 * crossing
    return 0.1, 10.0


def _grid(model: LinearModel, low: float, high: float) -> FloatArray:
    """Return frequencies from low to high, close together where the response turns fast."""
    high = high if model.period is None else min(high, np.pi / model.period)
    low = min(low, 0.1 * high)
    count = int(_PER_DECADE * np.log10(high / low)) + 2
    grid = [np.geomspace(low, high, count)]
    for rate in _rates(model):
        size, turn, decay = abs(rate), abs(rate.imag), abs(rate.real)
        if rate.imag < 0.0 or decay > 0.3 * size:
            continue
        damped = decay > _ON_AXIS * size
        width = decay if damped else _CLOSEST * size
        reach = np.arcsinh(0.3 * size / width)
        steps = np.sinh(np.linspace(-reach, reach, 81)) * width
        if not damped:
            steps = steps[np.abs(steps) >= 0.5 * width]
            grid = [each[np.abs(each - turn) >= 0.5 * width] for each in grid]
        grid.append(turn + steps)
    omega = np.unique(np.concatenate(grid))
    return omega[(omega >= low) & (omega <= high)]


def _turns(model: LinearModel, omega: FloatArray) -> tuple[FloatArray, int]:
    """Return a continuous phase in rad but for a constant, and how many poles are at zero."""
    # Less by the number of zeros there.
    poles, zeros = _poles_and_zeros(model)
    total = np.zeros(omega.shape)
    for roots, sign in ((zeros, 1.0), (poles, -1.0)):
        for root in roots:
            total += sign * _turn(root, omega, model.period)
    home = 0.0 if model.period is None else 1.0
    return total, int(np.sum(poles == home) - np.sum(zeros == home))


def _turn(root: complex, omega: FloatArray, period: float | None) -> FloatArray:
    """Return the continuous angle of s - root, or of z - root, along the frequencies."""
    if period is None:
        if root.real <= _ON_AXIS * abs(root):
            return np.arctan2(omega - root.imag, max(-root.real, 0.0))
        return np.pi - np.arctan2(omega - root.imag, root.real)
    z = np.exp(1j * omega * period)
    if abs(root) <= 1.0 + _ON_AXIS:
        return np.asarray(omega * period + np.angle(1.0 - root / z))
    return np.asarray(np.angle(-root) + np.angle(1.0 - z / root))


def gaps(curve: Curve) -> FloatArray:
    """Return the frequencies of undamped poles, in rad/s: between their two sides no line goes."""
    poles, _ = _poles_and_zeros(curve.model)
    if curve.model.period is not None:
        poles = poles[np.abs(poles) > 0.5]  # others are far from the circle
        poles = np.asarray(np.log(poles) / curve.model.period, dtype=complex)
    undamped = (np.abs(poles.real) <= _ON_AXIS * np.abs(poles)) & (poles.imag > 0.0)
    return np.sort(poles.imag[undamped])


# Crossings ------------------------------------------------------------------------------------


def closest_margins(curve: Curve) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Return the gain and the phase margin that are closest to instability, if a curve shows them.

    Each comes with its frequency in rad/s. The gain margin is a factor, the phase margin in
    degrees; they are there for loops that are not stable, too.
    """
    found = margins(curve.model)

    def shown(values: FloatArray, omega: FloatArray) -> list[tuple[float, float]]:
        pairs = zip(values.tolist(), omega.tolist(), strict=True)
        first, last = curve.omega[0], curve.omega[-1]
        return [(v, w) for v, w in pairs if np.isfinite(v) and first <= w <= last]

    gains = shown(found.gain_margins, found.gain_margin_frequencies)
    degrees = np.rad2deg(found.phase_margins).round(9) + 0.0
    phases = shown(degrees, found.phase_margin_frequencies)
    gain = min(gains, key=lambda each: abs(np.log(each[0])), default=None)
    return gain, min(phases, key=lambda each: abs(each[0]), default=None)

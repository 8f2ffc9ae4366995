"""Stability margins of feedback loops: gain, phase, delay, modulus and disk margins.

With L in the convention of negative feedback, the closed loop is at the boundary of stability where
L(jω) = -1, so margins are distances of the Nyquist curve from that point, in several measures. With
several wires it is there where det(I + L F) = 0 for a diagonal matrix F of factors at the wires.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.tangents import BLOCKS
from flexure.solvers.analysis.frequency.frequency_search import QuadraticSearch
from flexure.solvers.analysis.frequency.nyquist_curve import NyquistCurve
from flexure.solvers.analysis.frequency.structured_gain import structured_peak, worst_phases
from flexure.solvers.analysis.linear_models.linear_model import (
    LinearModel,
    channels,
    refuse_systems,
)
from flexure.solvers.analysis.linear_models.poles import Poles, fate, lasting_states, stability
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction

_ROUNDING = 1e-12  # relative: what is no difference of a factor from a pole

#: A, B, C and D.
Realization: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Margins(Answer):
    """Margins of a feedback loop at one wire, or at several wires at once.

    If the closed loop is unstable, it has no margins: the single values are NaN, and the lists
    contain all crossings of the curve.

    With several wires, gain, phase and delay margins are those of ``loops``, of one wire at a time
    while the others stay as they are, and the smallest of them counts. Modulus and disk margin, and
    what follows from them, hold for changes at all wires at the same time.

    Attributes
    ----------
    is_stable : bool
        Whether the closed loop is stable: all its poles decay by more than rounding, and so do
        states that the loop does not reach or does not see, where a block lets nothing through.
    gain_margins, gain_margin_frequencies : ndarray
        Factors ``1/|L|`` wherever L is real and negative, and the frequencies in rad/s, zero and
        inf (or half the sampling frequency) among them.
    phase_margins, phase_margin_frequencies : ndarray
        Angles of L beyond -180 degrees wherever ``|L| = 1``, in rad, in (-π, π], and the
        frequencies.
    delay_margin, delay_frequency : float
        The shortest delay in s that takes a stable loop to the boundary, and the frequency of the
        crossing where it does; inf when none does. Where ``|L|`` stays at 1 or above up to the
        highest frequency, no delay is short enough: 0, or of a sampled loop at most one period.
    modulus_margin, modulus_frequency : float
        The least distance of L from -1, which is ``1 / max |S|``, and where; with several wires
        ``1 / max σ(S)`` of the largest singular value.
    disk_margin, disk_frequency : float
        The least ``2 |1 + L| / |1 - L|``, and where: gain and phase may change at once, as
        `disk_gain_margins` and `disk_phase_margin` say. With several wires ``1 / max μ(S - I/2)``
        of the structured singular value, so that the factors at the wires may differ.
    worst_factors : ndarray of complex, shape (m,)
        The factors at the wires that take the loop to its boundary at ``worst_frequency``, by
        changes of the size ``worst_disk_margin``; see `worst_gains` and `worst_phases`.
    worst_disk_margin : float
        The size of these changes, at least ``disk_margin``, and for up to three wires the same.
    wires : tuple of str
        The m wires.
    loops : tuple of Margins
        Those of each wire alone, the others closed, if there are several.
    notes : tuple of str
        What the verdict rests on: states that neither decay nor grow, blocks that pass no small
        changes, and blocks that are linearized as gains.

    See Also
    --------
    margins : Compute them.
    loop_gain : The loop gain at a wire.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [2.0], [1.0, 3.0, 2.0, 0.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> found = fx.margins(fx.linearize(plant, context))
    >>> round(found.gain_margin, 6), round(np.degrees(found.phase_margin), 2)
    (3.0, np.float64(32.61))
    """

    is_stable: bool
    gain_margins: FloatArray
    gain_margin_frequencies: FloatArray
    phase_margins: FloatArray
    phase_margin_frequencies: FloatArray
    delay_margin: float
    delay_frequency: float
    modulus_margin: float
    modulus_frequency: float
    disk_margin: float
    disk_frequency: float
    worst_factors: npt.NDArray[np.complex128]
    worst_disk_margin: float
    wires: tuple[str, ...]
    loops: tuple[Margins, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gain_margin(self) -> float:
        """The least factor above 1 that makes the loop unstable; inf when none does."""
        above = self.gain_margins[self.gain_margins > 1.0]
        return float(above.min(initial=np.inf)) if self.is_stable else math.nan

    @property
    def gain_reduction(self) -> float:
        """The greatest factor below 1 that makes the loop unstable; 0 when none does."""
        below = self.gain_margins[self.gain_margins < 1.0]
        return float(below.max(initial=0.0)) if self.is_stable else math.nan

    @property
    def gain_frequency(self) -> float:
        """Frequency of the gain margin, in rad/s; NaN if there is none."""
        return self._frequency(self.gain_margins, self.gain_margin_frequencies, self.gain_margin)

    @property
    def phase_margin(self) -> float:
        """The smallest change of the phase, in rad, that makes the loop unstable; else inf."""
        least = float(np.abs(self.phase_margins).min(initial=np.inf))
        return least if self.is_stable else math.nan

    @property
    def phase_frequency(self) -> float:
        """Frequency of the phase margin, in rad/s; NaN if there is none."""
        angles = np.abs(self.phase_margins)
        return self._frequency(angles, self.phase_margin_frequencies, self.phase_margin)

    @property
    def worst_gains(self) -> FloatArray:
        """The gains of ``worst_factors``, one for each wire."""
        return np.abs(self.worst_factors)

    @property
    def worst_phases(self) -> FloatArray:
        """The phases of ``worst_factors`` in rad, negative for a lag, one for each wire."""
        return np.angle(self.worst_factors)

    @property
    def disk_gain_margins(self) -> tuple[float, float]:
        """Range of gain factors with a stable loop, with phases up to a trade-off."""
        half = 0.5 * self.disk_margin
        low = (1.0 - half) / (1.0 + half) if half != math.inf else -1.0
        high = (1.0 + half) / (1.0 - half) if not half >= 1.0 else math.inf
        return low, high

    @property
    def disk_phase_margin(self) -> float:
        """Largest phase change in rad with a stable loop, with gains up to a trade-off."""
        return 2.0 * math.atan(0.5 * self.disk_margin)

    @staticmethod
    def _frequency(values: FloatArray, frequencies: FloatArray, wanted: float) -> float:
        found = frequencies[values == wanted]
        return float(found[0]) if len(found) else math.nan

    def __str__(self) -> str:
        if not self.is_stable:
            verdict = "closed loop     not stable, so it has no margins"
            return "\n".join([verdict, *self._note_lines()])
        low, high = self.disk_gain_margins
        angle, both = math.degrees(self.phase_margin), math.degrees(self.disk_phase_margin)
        if self.loops:
            return "\n".join([*self._lines_of_wires(low, high, both), *self._note_lines()])
        lines = [
            "closed loop     stable",
            f"gain margin     {self.gain_margin:.4g}{_at(self.gain_frequency)}",
            f"gain reduction  {self.gain_reduction:.4g}",
            f"phase margin    {angle:.4g}°{_at(self.phase_frequency)}",
            f"delay margin    {self.delay_margin:.4g} s{_at(self.delay_frequency)}",
            f"modulus margin  {self.modulus_margin:.4g}{_at(self.modulus_frequency)}",
            f"disk margin     {self.disk_margin:.4g}{_at(self.disk_frequency)}",
            f"  at once       gains from {low:.4g} to {high:.4g}, or phases up to {both:.4g}°",
        ]
        return "\n".join([*lines, *self._note_lines()])

    def _lines_of_wires(self, low: float, high: float, angle: float) -> Iterator[str]:
        yield f"closed loop     stable, {len(self.wires)} wires"
        yield f"disk margin     {self.disk_margin:.4g}{_at(self.disk_frequency)}"
        yield f"  at once       gains from {low:.4g} to {high:.4g}, or phases up to {angle:.4g}°"
        yield f"modulus margin  {self.modulus_margin:.4g}{_at(self.modulus_frequency)}"
        yield f"worst factors   {self.worst_disk_margin:.4g}{_at(self.disk_frequency)}"
        for wire, factor in zip(self.wires, self.worst_factors, strict=True):
            phase = math.degrees(np.angle(factor))
            # A flat peak leaves its frequency, and so the factors there, with fewer digits.
            yield f"  at '{wire}'  gain {abs(factor):.3g}, phase {phase:.3g}°"
        for wire, loop in zip(self.wires, self.loops, strict=True):
            yield (
                f"'{wire}' alone  gain {loop.gain_reduction:.4g} to {loop.gain_margin:.4g}, phase "
                f"{math.degrees(loop.phase_margin):.4g}°, disk {loop.disk_margin:.4g}"
            )

    def _note_lines(self) -> list[str]:
        return [f"note            {note}" for note in self.notes]


@in_one_thread
def margins(loop: LinearModel) -> Margins:
    """Return the stability margins of a loop gain, at one wire or at several at once.

    Parameters
    ----------
    loop : LinearModel
        L in the convention of negative feedback, as `loop_gain` returns it, continuous or sampled.
        With several wires the margins are those of one wire at a time, and the multi-loop modulus
        and disk margins: at the inputs of a plant, at its outputs, or at both, as the wires are.

    Returns
    -------
    Margins

    Raises
    ------
    ValueRefusedError
        When it is no such model, or has other numbers of inputs and of outputs.
    EvaluationError
        When the loops of several wires have no solution while one of them is open.

    See Also
    --------
    loop_gain : The loop gain at a wire.
    bode : Plot with margins.
    nyquist : Plot around the point -1.

    Notes
    -----
    All crossings are found, however sharp: from the eigenvalues of the loop gain together with its
    adjoint, each refined as a root. Peaks are those of bounded-real conditions of the closed loop.
    States that the loop does not reach or does not see, such as those of an `EnergyLedger`, do not
    count, unless they grow. Those that neither decay nor grow are named in ``notes``; where a block
    passes no small changes, such as a `Saturation` beyond its limits, they count as well.

    With several wires, the disk margin is the inverse of the least upper bound of the structured
    singular value, with scales that are optimal at each frequency. It is a lower bound of the
    changes that make the loop unstable; up to three wires it is exact. No frequency is left out:
    bands in which nothing is worse than at the peak, but for 0.01 %, cover all of them. Changes of
    this size at ω = 0 or at the highest frequency are approached by real systems near there.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.TransferFunction("plant", [2.0], [1.0, 3.0, 2.0, 0.0]),
    ...     fx.Gain("feedback", -1.0),
    ... )
    >>> builder.connect_chain("plant", "feedback", "plant")
    >>> found = fx.margins(fx.loop_gain(builder.build(), "plant.y"))  # of 2 / (s (s + 1) (s + 2))
    >>> print(found)
    closed loop     stable
    gain margin     3 at 1.414 rad/s
    gain reduction  0
    phase margin    32.61° at 0.7494 rad/s
    delay margin    0.7596 s at 0.7494 rad/s
    modulus margin  0.4325 at 0.9253 rad/s
    disk margin     0.5053 at 0.8836 rad/s
      at once       gains from 0.5966 to 1.676, or phases up to 28.36°
    """
    attempt = "Cannot find margins"
    refuse_systems(loop, attempt, "the LinearModel of a loop gain")
    require(isinstance(loop, LinearModel), loop, attempt, "the LinearModel of a loop gain")
    require(
        0 < len(loop.D) == loop.D.shape[1],
        loop,
        attempt,
        "a loop gain with as many inputs as outputs",
        remedy="Take fx.loop_gain(diagram, wires), such as of ['plant.y[0]', 'plant.y[1]']",
    )
    return _margins(loop.on_tangent())


def _margins(loop: LinearModel, S: NyquistCurve | None = None) -> Margins:
    """Return the margins of a loop gain, given the sensitivity S at one wire of a stable loop."""
    A, B, C, D, hides = loop.A, loop.B, loop.C, loop.D, False
    if S is None or not S.shows_all:  # feedback hides no states, and shows none
        seen = reduction(A, B, C, HIDDEN)
        hides = len(seen.A) < len(A)
        A, B, C = (seen.A, seen.B, seen.C) if hides else (A, B, C)
    if S is None or hides:
        is_stable, notes = _verdict(A, B, C, D, loop, seen.hidden_poles)
    else:  # its poles are those of all loops
        is_stable, notes = True, loop.notes
    closed = _closed(A, B, C, D) if is_stable and S is None else None
    if len(D) > 1:
        return _of_wires(loop, closed, is_stable=is_stable, notes=notes)
    curve = NyquistCurve(A, B, C, D, loop.period, rotated=hides)
    if closed is not None and S is None:
        S = NyquistCurve(*closed, loop.period)
    S = S if is_stable else None
    (crossings, values), (unit, turned) = curve.crossings(S)
    ends = curve.ends()
    real = [(w, value) for w, value in ends if value < 0.0 and curve.is_faithful(w)]
    real += zip(crossings, values.real, strict=True)
    negative = sorted((w, value) for w, value in real if value < 0.0)
    beyond = np.angle(-turned)  # L = -1 has none
    phases = np.where(beyond <= -np.pi, np.pi, beyond)
    delays = [(angle % (2.0 * np.pi) / w, float(w)) for angle, w in zip(phases, unit, strict=True)]
    if abs(ends[-1][1]) >= 1.0:  # any delay in continuous time, or one of a whole sample
        delays.append((loop.period or 0.0, curve.end))
    delay, modulus, disk = ((math.nan, math.nan),) * 3
    factor = complex(math.nan)
    if S is not None:
        delay = min(delays, default=(math.inf, math.nan))
        modulus, disk = (_distance(S.shifted(center)) for center in (0.0, 0.5))
        with np.errstate(all="ignore"):
            at_end = dict(ends).get(disk[1])
            there = at_end if at_end is not None else curve.at(np.array([disk[1]]))[0][0]
            factor = np.divide(-1.0, there)
    return Margins(
        is_stable=is_stable,
        gain_margins=np.array([-1.0 / value for _, value in negative]),
        gain_margin_frequencies=np.array([w for w, _ in negative]),
        phase_margins=phases,
        phase_margin_frequencies=unit,
        delay_margin=float(delay[0]),
        delay_frequency=delay[1],
        modulus_margin=modulus[0],
        modulus_frequency=modulus[1],
        disk_margin=disk[0],
        disk_frequency=disk[1],
        worst_factors=np.array([factor], dtype=complex),
        worst_disk_margin=disk[0],
        wires=tuple(loop.input_names),
        loops=(),
        notes=notes,
    )


def _of_wires(
    loop: LinearModel, closed: Realization | None, *, is_stable: bool, notes: tuple[str, ...]
) -> Margins:
    """Return the margins at several wires, given the sensitivity of a stable closed loop."""
    m = len(loop.D)
    loops: tuple[Margins, ...] = ()
    if closed is not None:
        S = NyquistCurve(*closed, loop.period)
        loops = tuple(_margins(_others_closed(loop, k), S.channel(k)) for k in range(m))
    modulus, disk = ((math.nan, math.nan),) * 2
    factors, size = np.full(m, complex(math.nan)), math.nan
    delay = min(((each.delay_margin, each.delay_frequency) for each in loops), default=modulus)
    if closed is not None:
        gain = QuadraticSearch.squared(S)
        peak, where = gain.peak()
        modulus = _inverse(math.sqrt(peak)), where
        worst, where, M, scales = structured_peak(gain.shifted(0.5))
        phases, radius = worst_phases(M, scales)
        disk, size = (_inverse(worst), where), _inverse(radius)
        away = 2.0 * radius - phases
        is_infinite = np.abs(away) <= _ROUNDING * radius
        factors = (2.0 * radius + phases) / np.where(is_infinite, 1.0, away)
        factors[is_infinite] = np.inf

    def joined(name: str) -> FloatArray:
        return np.concatenate([np.zeros(0), *(getattr(each, name) for each in loops)])

    return Margins(
        is_stable=is_stable,
        gain_margins=joined("gain_margins"),
        gain_margin_frequencies=joined("gain_margin_frequencies"),
        phase_margins=joined("phase_margins"),
        phase_margin_frequencies=joined("phase_margin_frequencies"),
        delay_margin=delay[0],
        delay_frequency=delay[1],
        modulus_margin=modulus[0],
        modulus_frequency=modulus[1],
        disk_margin=disk[0],
        disk_frequency=disk[1],
        worst_factors=factors,
        worst_disk_margin=size,
        wires=tuple(loop.input_names),
        loops=loops,
        notes=notes,
    )


def _closed(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray) -> Realization:
    """Return the sensitivity (I + L)⁻¹."""
    back: FloatArray = np.asarray(np.linalg.inv(np.eye(len(D)) + D), dtype=float)
    return A - B @ back @ C, B @ back, -back @ C, back


def _others_closed(loop: LinearModel, k: int) -> LinearModel:
    """Return the loop gain at one of several wires, with the loops of the others closed."""
    rest = [j for j in range(len(loop.D)) if j != k]
    B, C, D = loop.B[:, rest], loop.C[rest], loop.D
    direct = np.eye(len(rest)) + D[rest][:, rest]
    if D.any() and np.linalg.matrix_rank(direct) < len(rest):
        raise EvaluationError(
            "Cannot find margins",
            expected="other loops that have a solution while one of them is open",
            found=f"none with '{loop.input_names[k]}' open: their gain is -1 at infinite frequency",
            remedy="Leave this wire out of the loop gain",
        )
    back = np.linalg.inv(direct)
    by_rest, from_own = D[[k]][:, rest] @ back, D[rest][:, [k]]
    own = channels(loop, [k], [k])
    return replace(
        own,
        A=loop.A - B @ back @ C,
        B=own.B - B @ back @ from_own,
        C=own.C - by_rest @ C,
        D=own.D - by_rest @ from_own,
    )


def _verdict(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, loop: LinearModel, hidden: Poles
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the closed loop is stable and no hidden state grows, and what this rests on.

    Hidden states may stay, as the integral of an outer loop does, but not where a block in the way
    passes nothing: then they may be what the loop is there for.
    """
    if np.linalg.matrix_rank(np.eye(len(D)) + D) < len(D):
        return False, ("the loop gain is -1 at infinite frequency: no solution", *loop.notes)
    is_open = not (len(A) or D.any())  # then all states are hidden
    is_stable, neutral = stability(loop.A if is_open else _closed(A, B, C, D)[0], loop.period)
    every = np.linalg.eigvals(loop.A).astype(complex)
    rest = fate(hidden, every, loop.period)
    notes = ["the loop gain is zero: no small change comes back"] if is_open else []
    staying: list[str] = []
    if neutral.size or A is not loop.A:
        whole = _closed(loop.A, loop.B, loop.C, loop.D)[0]
        staying = lasting_states(whole, loop.state_names, loop.period)
    if neutral.size:
        notes.append(f"motions of {quoted(staying)} neither decay nor grow in the closed loop")
    elif staying:
        notes.append(f"motions of {quoted(staying)} beside the loop neither decay nor grow")
    if not is_open and rest == "stay":
        is_stable = is_stable and not any(BLOCKS in note for note in loop.notes)
    return is_stable and rest != "grow", (*notes, *loop.notes)


def _distance(curve: NyquistCurve) -> tuple[float, float]:
    """Return the inverse of the highest value of a curve, and the frequency."""
    peak, where = curve.peak()
    return _inverse(peak), where


def _inverse(peak: float) -> float:
    return 1.0 / peak if peak > 0.0 else math.inf


def _at(frequency: float) -> str:
    return "" if math.isnan(frequency) else f" at {frequency:.4g} rad/s"

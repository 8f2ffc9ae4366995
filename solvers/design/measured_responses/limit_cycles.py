"""Limit cycles of a loop with a nonlinear block, by harmonic balance and by simulation.

The block answers ``u = b + A sin(ωt)`` with the mean m(A, b) and the fundamental N(A, b) A. The
linear rest G of the loop leads it back to u. Both balance where ``N G(jω) = 1`` and where the means
of the whole loop are constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import EvaluationError, FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze
from flexure.diagrams.values.handles import start_context
from flexure.solvers.analysis.equations.equations import refuse_sampled
from flexure.solvers.analysis.frequency.frequency_curves import frequencies
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearized
from flexure.solvers.design.measured_responses.describing_functions import (
    DescribingFunction,
    Harmonics,
    fourier,
)
from flexure.solvers.simulation.simulation import simulate

if TYPE_CHECKING:
    from flexure.solvers.design.measured_responses import response_plots
else:
    response_plots = Deferred("flexure.solvers.design.measured_responses.response_plots")

_BALANCED = 1e-9  # of the amplitude or of the largest mean
_ROUGHLY = 1e-4  # how exact the means are where cycles are looked for
_TRIALS = 30  # of a mean
_REACHES = 0.05, 1.0, 4.0  # amplitudes within which means are looked for
_SAME = 1e-4  # relative distance of two solutions that are one
_STARTS = 0.7, 1.3  # times the predicted cycle, where simulations begin
_CYCLES, _MOST_CYCLES = 30, 500  # of a simulation
_STEADY = 1e-5  # relative change of amplitude and period from one cycle to a later one
_AGREE = 0.1  # relative difference of prediction and simulation that is worth a note
_MET = 1e-2  # relative difference of the amplitudes that two simulations reach
_RTOL = 1e-8


@dataclass(frozen=True, eq=False)
class LimitCycles(Answer):
    """The limit cycles that harmonic balance predicts, and what simulations show.

    Attributes
    ----------
    amplitudes : ndarray, shape (n,)
        Predicted amplitudes at the input of the block, ascending; empty when there is no cycle.
    frequencies : ndarray, shape (n,)
        Predicted frequencies in rad/s.
    biases : ndarray, shape (n,)
        Mean values at the input of the block.
    is_stable : ndarray of bool, shape (n,)
        Whether the balance predicts that the motion returns to the cycle.
    simulated_amplitudes, simulated_frequencies : ndarray, shape (n,)
        Amplitude of the fundamental, and frequency, that simulations reach from 70 % and from
        130 % of the predicted cycle; NaN where they do not reach the same one.
    is_confirmed : ndarray of bool, shape (n,)
        Whether simulations reach a cycle that is predicted to be stable, or leave an unstable one
        on both sides. False where nothing was simulated.
    describing_function : DescribingFunction
        Of the block, at the amplitudes that were searched, with the mean of the first one.
    model : LinearModel
        G, the linear rest of the loop: from the output of the block to its input.
    notes : tuple of str
        Where simulations disagree, and which blocks of the rest pass no small changes.

    See Also
    --------
    limit_cycles : Predict them.

    Examples
    --------
    A saturation in a loop that is unstable for small motions:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Gain("minus", -12.0),
    ...     fx.Saturation("motor", -1.0, 1.0),
    ...     fx.TransferFunction("plant", [1.0], [1.0, 3.0, 3.0, 1.0]),
    ... )
    >>> builder.connect_chain("minus", "motor", "plant", "minus")
    >>> loop = builder.build()
    >>> found = fx.limit_cycles(loop, "motor", np.geomspace(0.5, 20.0, 20), confirm=False)
    >>> len(found), found.frequencies.round(6)
    (1, array([1.732051]))
    """

    amplitudes: FloatArray
    frequencies: FloatArray
    biases: FloatArray
    is_stable: npt.NDArray[np.bool_]
    simulated_amplitudes: FloatArray
    simulated_frequencies: FloatArray
    is_confirmed: npt.NDArray[np.bool_]
    describing_function: DescribingFunction
    model: LinearModel
    notes: tuple[str, ...]

    plot = response_plots.plot_limit_cycles

    def __len__(self) -> int:
        return len(self.amplitudes)

    def __str__(self) -> str:
        searched = self.describing_function.amplitudes
        name = self.describing_function.name
        lines = [
            f"no limit cycle at '{name}' at amplitudes {searched[0]:.4g} to {searched[-1]:.4g}"
        ]
        if len(self):
            lines = [
                f"limit cycles at the input of '{name}'",
                "  amplitude   rad/s       stable  simulated amplitude, rad/s  confirmed",
            ]
        for k, amplitude in enumerate(self.amplitudes):
            shown = f"{self.simulated_amplitudes[k]:.4g}, {self.simulated_frequencies[k]:.4g}"
            lines.append(
                f"  {amplitude:<10.4g}  {self.frequencies[k]:<10.4g}  "
                f"{'yes' if self.is_stable[k] else 'no':<6}  {shown:<26}  "
                f"{'yes' if self.is_confirmed[k] else 'no'}"
            )
        return "\n".join([*lines, *(f"note  {note}" for note in self.notes)])


@dataclass
class _Balance:
    """Amplitude, mean value of the input, describing function and mean of the output."""

    amplitude: float
    bias: float
    gain: complex
    mean: float


@answers_other_words
def limit_cycles(
    system: Diagram,
    block: System | str,
    amplitudes: npt.ArrayLike,
    *,
    context: Context | None = None,
    confirm: bool = True,
) -> LimitCycles:
    """Predict limit cycles of a loop with a nonlinear block, and simulate them.

    Parameters
    ----------
    system : Diagram
        A diagram with a loop through the block.
    block : System or str
        The nonlinear block, or its path: with one input and one output of one component.
    amplitudes : array_like, shape (n,)
        Ascending amplitudes at its input, between which cycles are looked for, such as
        ``np.geomspace(0.1, 10.0, 60)``. Between two neighbors the describing function should bend
        little.
    context : Context, optional
        Operating point, about which the rest of the loop is linear; a root context, which is not
        changed. A default context when omitted.
    confirm : bool
        Whether to simulate from both sides of each cycle.

    Returns
    -------
    LimitCycles
        Empty when there is none at these amplitudes.

    Raises
    ------
    UnknownNameError
        When there is no such block.
    ValueRefusedError
        When amplitudes are not ascending above zero, or the block has other ports.
    EvaluationError
        When the describing function depends on the frequency, or the system has sampled blocks.

    See Also
    --------
    describing_function : The describing function alone.
    loop_gain : The linear rest of the loop, up to its sign.

    Notes
    -----
    Harmonic balance neglects what harmonics return through the rest of the loop. It is accurate
    where the rest is a low-pass filter, and can predict cycles that do not exist, or miss some. So
    each cycle is simulated; ``notes`` says where simulation and prediction differ by more than
    10 %.

    The mean value of the loop is part of the balance, for relays between 0 and 1 or loads that
    push to one side. A cycle is stable if the poles of the loop with the gain N(A), but those of
    the cycle itself, decay, and if a larger amplitude makes the cycle decay (Loeb's criterion).

    Examples
    --------
    A relay with the plant 1 / (s (s + 1)²). The phase of the plant is -180° at 1 rad/s:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Gain("minus", -1.0),
    ...     fx.Relay("relay", 0.001, -0.001, on_value=1.0, off_value=-1.0),
    ...     fx.TransferFunction("plant", [1.0], [1.0, 2.0, 1.0, 0.0]),
    ... )
    >>> builder.connect_chain("minus", "relay", "plant", "minus")
    >>> found = fx.limit_cycles(builder.build(), "relay", np.geomspace(0.1, 2.0, 20))
    >>> found.amplitudes.round(3), found.frequencies.round(3), found.is_stable
    (array([0.639]), array([0.998]), array([ True]))
    >>> found.simulated_amplitudes.round(2), found.simulated_frequencies.round(2)
    (array([0.67]), array([0.98]))
    """
    require_system(system, "Cannot find limit cycles")
    attempt = f"Cannot find limit cycles of '{system.label}'"
    require(isinstance(system, Diagram), system, attempt, "a diagram with a loop")
    start = start_context(system, context, attempt)
    sizes = as_numbers(amplitudes, attempt, "amplitudes")
    fits = bool(sizes.ndim == 1 and sizes.size > 1 and np.isfinite(sizes).all())
    fits = fits and bool(sizes[0] > 0.0 and np.all(np.diff(sizes) > 0.0))
    require(fits, amplitudes, attempt, "two or more ascending amplitudes above zero")
    simulated = flag(confirm, "confirm", attempt)
    nonlinear: Any = system.get_system(block) if isinstance(block, str) else block
    require_system(nonlinear, attempt)
    start.find(nonlinear)  # refuses blocks of other systems
    search = _Search(start, nonlinear, attempt)
    curve = search.curve(sizes)
    if not curve:
        raise EvaluationError(
            attempt,
            expected="an amplitude at which the mean values of the loop balance",
            found="none, so that the loop drifts away",
            remedy="Start from an equilibrium, or pass other amplitudes",
        )
    cycles = [search.refined(near, omega) for near, omega in search.crossings(curve)]
    cycles = sorted(cycles, key=lambda each: each[0].amplitude)
    unique = [
        each
        for k, each in enumerate(cycles)
        if not any(_are_same(each, other) for other in cycles[:k])
    ]
    found = np.array([(c.amplitude, omega, c.bias) for c, omega in unique]).reshape(-1, 3)
    stable = np.array([search.is_stable(c, omega) for c, omega in unique], dtype=bool)
    own = f"'{nonlinear.label}' "
    notes = [note for note in search.model.notes if not note.startswith(own)]
    reached = np.full((len(unique), 2), np.nan)
    confirmed = np.zeros(len(unique), dtype=bool)
    if simulated:
        for k, (cycle, omega) in enumerate(unique):
            reached[k], confirmed[k], said = search.confirmed(cycle, omega, bool(stable[k]))
            notes += said
    return LimitCycles(
        amplitudes=freeze(found[:, 0].copy()),
        frequencies=freeze(found[:, 1].copy()),
        biases=freeze(found[:, 2].copy()),
        is_stable=stable,
        simulated_amplitudes=freeze(reached[:, 0].copy()),
        simulated_frequencies=freeze(reached[:, 1].copy()),
        is_confirmed=confirmed,
        describing_function=DescribingFunction(
            np.array([each.amplitude for each in curve]),
            np.array([each.gain for each in curve]),
            np.array([each.mean for each in curve]),
            curve[0].bias,
            nonlinear.label,
        ),
        model=search.model,
        notes=tuple(dict.fromkeys(notes)),
    )


def _are_same(one: tuple[_Balance, float], other: tuple[_Balance, float]) -> bool:
    """Return whether two solutions are one."""
    a, b = (np.log([cycle.amplitude, omega]) for cycle, omega in (one, other))
    return bool(np.max(np.abs(a - b)) < _SAME)


class _Search:
    """The balance of a nonlinear block and the linear rest of its loop."""

    def __init__(self, context: Context, block: Any, attempt: str) -> None:
        self._context, self._block, self._attempt = context, block, attempt
        remedy = "Use the continuous system; a sampled loop has cycles of whole numbers of samples"
        refuse_sampled(context, attempt, remedy)
        self._harmonics = Harmonics(block, context, 1.0, attempt)
        entry, output = block.input_ports[0], block.output_ports[0]
        system = context.system
        self.model = linearized(system, context, [output], [entry], attempt, openings=[output])
        model = self.model
        n = len(model.A)
        # x, the mean of the output and that of the input, as deviations
        equations = np.zeros((n + 1, n + 2))
        equations[:n, :n], equations[:n, n : n + 1] = model.A, model.B
        equations[n:, :n], equations[n:, n : n + 1], equations[n, n + 1] = model.C, model.D, -1.0
        right = np.append(-model.xdot0, 0.0)
        self._point = np.linalg.lstsq(equations, right, rcond=None)[0]
        _, sizes, turned = np.linalg.svd(equations)
        free = turned[np.sum(sizes > 1e-12 * sizes[0]) :]
        _, _, ways = np.linalg.svd(free[:, n:])
        self._way = np.linalg.lstsq(free[:, n:].T, ways[0], rcond=None)[0] @ free
        if abs(self._way[n + 1]) > 1e-9:
            self._way = self._way / self._way[n + 1]

    def _means(self, step: float) -> tuple[FloatArray, float, float]:
        """Return states, mean output and mean input that are constant in the linear rest."""
        whole = self._point + step * self._way
        mean = whole[-2] + self.model.u0[0]
        return self.model.x0 + whole[:-2], float(mean), float(whole[-1] + self.model.y0[0])

    def _answer(self, amplitude: float, step: float) -> tuple[_Balance, float]:
        """Return what the block answers, and how far its mean is from the one that is wanted."""
        _, wanted, bias = self._means(step)
        gain, mean = self._harmonics(amplitude, bias)
        scale = max(abs(mean), abs(wanted), abs(gain) * amplitude)
        error = (mean - wanted) / scale if scale > 0.0 else 0.0
        return _Balance(amplitude, bias, gain, mean), error

    def balance(
        self, amplitude: float, step: float, tolerance: float = _BALANCED
    ) -> tuple[_Balance | None, float]:
        """Return the balance of the means at an amplitude next to a step, and its step."""
        from scipy.optimize import brentq

        def error(at: float) -> float:
            return self._answer(amplitude, at)[1]

        balance, here = self._answer(amplitude, step)
        if abs(here) <= _BALANCED:
            return balance, step
        for reach in _REACHES:
            ends = step - reach * amplitude, step + reach * amplitude
            sides = [error(end) for end in ends]
            if sides[0] * sides[1] <= 0.0:
                step, _ = brentq(
                    error,
                    *ends,
                    xtol=tolerance * amplitude,
                    maxiter=_TRIALS,
                    full_output=True,
                    disp=False,
                )
                balance, here = self._answer(amplitude, float(step))
                return (balance if abs(here) <= _ROUGHLY else None), float(step)
        return None, step

    def curve(self, amplitudes: FloatArray) -> list[_Balance]:
        """Return the balances at ascending amplitudes; those that have none are left out."""
        found: list[_Balance] = []
        step = -float(self._point[-1]) if abs(self._way[-1]) > 1e-9 else 0.0
        for amplitude in amplitudes[::-1]:  # large ones cross all thresholds
            balance, there = self.balance(float(amplitude), step, _ROUGHLY)
            if balance is not None:
                found.insert(0, balance)
                step = there
        if found:
            other = Harmonics(self._block, self._context, 3.0, self._attempt)
            gain, _ = other(found[-1].amplitude, found[-1].bias)
            if abs(gain - found[-1].gain) > 1e-6 * abs(gain):
                raise EvaluationError(
                    self._attempt,
                    expected="a block whose describing function depends on the amplitude alone",
                    found=f"other gains of '{self._block.label}' at 1 and at 3 rad/s",
                    remedy="Split its dynamics from the nonlinearity",
                )
        return found

    def crossings(self, curve: list[_Balance]) -> Iterator[tuple[_Balance, float]]:
        """Yield where the polygon of N(A) crosses that of 1 / G(jω)."""
        (grid,) = frequencies([self.model], None, "rad/s", self._attempt, beyond=10.0)
        response = self.model.frequency_response(grid)[:, 0, 0]
        with np.errstate(all="ignore"):
            inverse = 1.0 / response
        gains = np.array([each.gain for each in curve])
        p, r = gains[:-1, None], np.diff(gains)[:, None]
        q, s = inverse[None, :-1], np.diff(inverse)[None, :]
        with np.errstate(all="ignore"):
            cross = (r.conj() * s).imag
            along = ((q - p).conj() * s).imag / cross
            across = ((q - p).conj() * r).imag / cross
            hits = (along >= 0.0) & (along < 1.0) & (across >= 0.0) & (across < 1.0)
        for i, j in np.argwhere(hits):
            t, w = along[i, j], across[i, j]
            size = curve[i].amplitude ** (1.0 - t) * curve[i + 1].amplitude ** t
            bias = curve[i].bias * (1.0 - t) + curve[i + 1].bias * t
            gain = curve[i].gain * (1.0 - t) + curve[i + 1].gain * t
            yield _Balance(size, bias, gain, np.nan), float(grid[j] ** (1.0 - w) * grid[j + 1] ** w)

    def _rest(self, omega: float) -> complex:
        return complex(self.model.frequency_response(omega)[0, 0])

    def _step_of(self, balance: _Balance) -> float:
        """Return where the linear rest has the mean values of a balance."""
        n = len(self._way) - 2
        k, value = (n + 1, balance.bias - self.model.y0[0])
        if abs(self._way[k]) < 1e-9:
            return 0.0
        return float((value - self._point[k]) / self._way[k])

    def refined(self, near: _Balance, omega: float) -> tuple[_Balance, float]:
        """Return the exact solution next to an estimate, or the estimate where there is a jump."""
        from scipy.optimize import root

        def errors(z: FloatArray) -> FloatArray:
            size, turns = np.exp(z[:2])
            balance, error = self._answer(float(size), float(z[2] * size))
            whole = balance.gain * self._rest(float(turns)) - 1.0
            return np.array([whole.real, whole.imag, error])

        start = np.array([*np.log([near.amplitude, omega]), self._step_of(near) / near.amplitude])
        found = root(errors, start, options={"xtol": 1e-11, "eps": 1e-7})
        is_near = bool(np.max(np.abs(found.x - start)) < 0.5)
        z = found.x if is_near and np.max(np.abs(found.fun)) < 1e-6 else start
        size, turns = np.exp(z[:2])
        return self._answer(float(size), float(z[2] * size))[0], float(turns)

    def is_stable(self, cycle: _Balance, omega: float) -> bool:
        """Judge a cycle by Loeb's criterion, and by the other poles of the loop with its gain."""
        step, change = self._step_of(cycle), 1e-4
        sides = [
            self.balance(cycle.amplitude * np.exp(sign * change), step)[0] for sign in (-1.0, 1.0)
        ]
        if any(side is None for side in sides):
            return False
        slope = (sides[1].gain - sides[0].gain) * self._rest(omega)  # type: ignore[union-attr]
        ahead, behind = (self._rest(omega * np.exp(sign * change)) for sign in (1.0, -1.0))
        turn = cycle.gain * (ahead - behind) / 1j
        own = self.model.on_tangent()
        real, rate = cycle.gain.real, cycle.gain.imag / omega  # y = real u + rate du/dt
        A, B, C = own.A, own.B, own.C
        through = (real * C + rate * C @ A) / (1.0 - rate * (C @ B)[0, 0])
        direct = 1.0 - real * own.D[0, 0]
        poles = np.linalg.eigvals(A + B @ through / direct)
        rest = poles[np.argsort(np.abs(poles.real) + np.abs(np.abs(poles.imag) - omega))][2:]
        decays = bool(np.all(rest.real < 1e-6 * omega))
        return decays and bool((slope / turn).real > 0.0)

    def confirmed(
        self, cycle: _Balance, omega: float, is_stable: bool
    ) -> tuple[tuple[float, float], bool, list[str]]:
        """Simulate from both sides of a cycle: what is reached, whether it agrees, and notes."""
        where = f"the cycle of amplitude {cycle.amplitude:.4g} at {omega:.4g} rad/s"
        ends = [self._reached(cycle, omega, scale) for scale in _STARTS]
        (low, _), (high, turns) = ends
        meet = abs(high - low) <= _MET * max(low, high)  # False for NaN
        if is_stable:
            if not meet or high < _STARTS[0] * 0.5 * cycle.amplitude:
                text = f"{where} is not reached: simulations end at {low:.4g} and {high:.4g}"
                return (np.nan, np.nan), False, [text]
            off = max(abs(high / cycle.amplitude - 1.0), abs(turns / omega - 1.0))
            notes = [f"{where} differs by {100.0 * off:.0f} % from its simulation"] * (off > _AGREE)
            return (high, turns), True, notes
        leaves = not low > _STARTS[0] * cycle.amplitude, not high < _STARTS[1] * cycle.amplitude
        if all(leaves) and not meet:
            return (np.nan, np.nan), True, []
        text = f"{where} is predicted to be unstable; simulations end at {low:.4g} and {high:.4g}"
        return ((high, turns) if meet else (np.nan, np.nan)), False, [text]

    def _reached(self, cycle: _Balance, omega: float, scale: float) -> tuple[float, float]:
        """Return amplitude and frequency at the end of a run that begins near a cycle."""
        model, period = self.model, 2.0 * np.pi / omega
        context = self._context.clone()
        mean, _, _ = self._means(self._step_of(cycle))
        matrix = 1j * omega * np.eye(len(model.A)) - model.A
        swing = np.linalg.solve(matrix, model.B[:, 0]) * cycle.gain * cycle.amplitude
        leaf: Any = context.find(self._block)
        leaf.discrete = self._harmonics.discrete(cycle.amplitude, cycle.bias)
        context.store.set_motion(context.time, mean + scale * swing.imag)
        start, cycles = float(context.time), _CYCLES
        while True:
            try:
                result = simulate(
                    context.system, start + cycles * period, context=context, rtol=_RTOL
                )
            except FlexureError:
                return np.inf, np.nan
            sample = partial(result.sample, self._block.input_ports[0])
            ends = [
                _cycle_at(sample, start, part * cycles * period, period, result.time)
                for part in (0.6, 1.0)
            ]
            change = max(
                abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in zip(*ends, strict=True)
            )
            if not change > _STEADY or cycles >= _MOST_CYCLES:
                return ends[1]
            cycles *= 2


def _cycle_at(
    sample: Any, start: float, end: float, period: float, stops: FloatArray
) -> tuple[float, float]:
    """Return amplitude and frequency of the last whole cycle before a time after the start."""
    times = start + end - 3.0 * period * np.linspace(1.0, 0.0, 601)
    values = sample(times)
    level = float(np.mean(values))
    rises = np.flatnonzero((values[:-1] < level) & (values[1:] >= level))
    if len(rises) < 2 or np.ptp(values) < 1e-9 * (1.0 + abs(level)):  # it grows slowly, or rests
        return 0.5 * float(np.ptp(values)), np.nan
    first, last = (_crossing(sample, times[k], times[k + 1], level) for k in rises[-2:])
    _, fundamental = fourier(sample, first, last - first, stops)
    return 2.0 * abs(fundamental), 2.0 * np.pi / (last - first)


def _crossing(sample: Any, a: float, b: float, level: float) -> float:
    """Return where a signal crosses a level."""
    from scipy.optimize import brentq

    return float(brentq(lambda t: float(sample(np.array([t]))[0]) - level, a, b, xtol=1e-14))
